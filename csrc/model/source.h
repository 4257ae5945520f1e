/** Bytes of a checkpoint: a file, or the caller's memory. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "uform/types.h"

namespace uform {

/**
 *  A file is read in pieces rather than mapped: one that is cut short meanwhile is then an error, not a signal, and its
 *  pages do not count twice. Reading is safe from many threads at once.
 */
class source_t {
  public:
    source_t() noexcept = default;
    source_t(void const *data, size_t length) noexcept : data_(static_cast<std::byte const *>(data)), size_(length) {}
    source_t(source_t const &) = delete;
    source_t &operator=(source_t const &) = delete;
    ~source_t();

    /** Opens a regular file. IO, noted as the thread's failure, names the path. */
    uform_status_t open(char const *path) noexcept;

    uint64_t size() const noexcept { return size_; }
    /** Reads all of `bytes` from `offset`. IO or MALFORMED (the file ends before), noted as the thread's failure. */
    uform_status_t read(uint64_t offset, std::span<std::byte> bytes) const noexcept;

  private:
    std::byte const *data_ = nullptr;
    uint64_t size_ = 0;
    int descriptor_ = -1;
};

} // namespace uform
