/** Host memory aligned to 64 bytes. */
#pragma once
#include <cstddef>
#include <utility>

namespace uform {

/** At least `bytes` bytes aligned to 64, on huge pages where they pay; nullptr: out of memory. */
std::byte *allocate_memory(size_t bytes) noexcept;
/** Releases what `allocate_memory` gave. */
void free_memory(std::byte *pointer) noexcept;

/** A block that grows and never shrinks. */
class memory_block_t {
  public:
    memory_block_t() noexcept = default;
    memory_block_t(memory_block_t &&other) noexcept
        : data_(std::exchange(other.data_, nullptr)), capacity_(std::exchange(other.capacity_, 0)) {}
    memory_block_t &operator=(memory_block_t &&other) noexcept {
        std::swap(data_, other.data_);
        std::swap(capacity_, other.capacity_);
        return *this;
    }
    ~memory_block_t() { free_memory(data_); }

    /**
     *  Room for `bytes` bytes; what was there is lost where the block has to grow, by an eighth more than asked for so
     *  that batches of slowly rising size do not grow it each time. nullptr: out of memory, and the block is empty.
     */
    std::byte *reserve(size_t bytes) noexcept;

    std::byte *data() const noexcept { return data_; }
    size_t capacity() const noexcept { return capacity_; }

    /** Forgets the memory: for the child of a fork, which may have caught the parent in the middle of `reserve`. */
    void abandon() noexcept {
        data_ = nullptr;
        capacity_ = 0;
    }

  private:
    std::byte *data_ = nullptr;
    size_t capacity_ = 0;
};

} // namespace uform
