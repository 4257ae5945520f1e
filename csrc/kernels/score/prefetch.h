/** Rows on their way from memory. Included behind a class's header. Internal linkage: see there. */
#pragma once
#include <cstddef>

namespace uform {
namespace {

/** Far enough ahead of what is worked on for memory to answer; measured. */
constexpr size_t prefetch_distance_k = 16384;

/**
 *  Asks for a line some way ahead of an address. It goes to L2: the few lines that L1 can wait for are needed by what
 *  is worked on. Past the last row nothing is lost but time.
 */
inline void prefetch_line(void const *address) noexcept {
    __builtin_prefetch(static_cast<char const *>(address) + prefetch_distance_k, 0, 2);
}

/**
 *  As many bytes as the rows that come next have: a dozen rows are read side by side, which the system's own
 *  prefetching does not take for one stream.
 */
inline void prefetch_rows(void const *rows, size_t bytes) noexcept {
    for (size_t offset = 0; offset < bytes; offset += 64) prefetch_line(static_cast<char const *>(rows) + offset);
}

} // namespace
} // namespace uform
