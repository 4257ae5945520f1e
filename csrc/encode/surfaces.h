/** Where a call's outputs come to lie in its arena. */
#pragma once
#include <algorithm>
#include <cstddef>

#include "uform/types.h"

#include "../core/failure.h"

namespace uform {

/** Where one after another surface comes to lie in a block, each aligned to 64 bytes. */
class layout_t {
  public:
    /** The offset of `rows` rows of `row_bytes` bytes. */
    size_t add(size_t rows, size_t row_bytes) noexcept {
        size_t const begin = end_;
        size_t bytes = 0;
        overflows_ |= __builtin_mul_overflow(rows, row_bytes, &bytes);
        overflows_ |= __builtin_add_overflow(begin, bytes, &end_);
        overflows_ |= __builtin_add_overflow(end_, (64 - end_ % 64) % 64, &end_);
        return begin;
    }
    bool overflows() const noexcept { return overflows_; }
    /** Never zero: surfaces without rows have an address too. */
    size_t bytes() const noexcept { return std::max<size_t>(end_, 64); }

  private:
    size_t end_ = 0;
    bool overflows_ = false;
};

inline uform_rows_t rows_at(std::byte *data, size_t rows, size_t columns, uform_scalar_t scalar,
                            uint64_t generation) noexcept {
    return {data, rows, columns, columns * uform_scalar_size(scalar), scalar, generation};
}

inline uform_status_t cancelled() noexcept {
    return fail(uform_cancelled_k, UFORM_NO_ITEM, "progress: the handler stopped the call");
}

} // namespace uform
