#include "memory.h"

#include <cstdint>
#include <cstdlib>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace uform {
namespace {
constexpr size_t line_k = 64;
constexpr size_t huge_page_k = size_t(2) << 20;
/** Below this, rounding up to whole huge pages would waste more than their faults cost. */
constexpr size_t huge_from_k = size_t(4) << 20;
} // namespace

std::byte *allocate_memory(size_t bytes) noexcept {
    size_t const alignment = bytes >= huge_from_k ? huge_page_k : line_k;
    if (bytes > SIZE_MAX - alignment) return nullptr;
    size_t const rounded = bytes == 0 ? line_k : (bytes + line_k - 1) / line_k * line_k;
    void *pointer = nullptr;
    if (posix_memalign(&pointer, alignment, rounded) != 0) return nullptr;
#if defined(__linux__)
    // A wish: without it the memory is as good, and slower to touch first.
    if (bytes >= huge_from_k) madvise(pointer, rounded, MADV_HUGEPAGE);
#endif
    return static_cast<std::byte *>(pointer);
}

void free_memory(std::byte *pointer) noexcept { std::free(pointer); }

std::byte *memory_block_t::reserve(size_t bytes) noexcept {
    if (data_ && bytes <= capacity_) return data_;
    free_memory(data_);
    data_ = nullptr;
    bool const grows_again = capacity_ != 0;
    capacity_ = 0;
    size_t const slack = grows_again && bytes <= SIZE_MAX / 2 ? bytes / 8 : 0;
    size_t capacity = bytes + slack;
    data_ = allocate_memory(capacity);
    if (!data_ && slack) data_ = allocate_memory(capacity = bytes);
    if (data_) capacity_ = capacity;
    return data_;
}

} // namespace uform
