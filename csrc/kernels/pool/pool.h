/**
 *  Mean pooling: mean[n] = sum of rows[i][n] over i, in order, divided by `count`. F32 sums, rounded to activations. A
 *  range of columns may be pooled apart from the others: each has a sum of its own.
 *  Relative tolerance: 1e-6 * sqrt(count), and the rounding of BF16 activations.
 */
#pragma once
#include <cstddef>

namespace uform {

struct pooling_t {
    float const *rows = nullptr; /**< [count, columns] without gaps. */
    size_t count = 0;            /**< At least 1. */
    size_t columns = 0;
    size_t column_begin = 0; /**< A range in steps of 32. */
    size_t column_end = 0;
    void *activations = nullptr; /**< [columns], of which the range is written. */
};

void pool_serial(pooling_t const &arguments) noexcept;
void pool_haswell(pooling_t const &arguments) noexcept;
void pool_skylake(pooling_t const &arguments) noexcept;
void pool_genoa(pooling_t const &arguments) noexcept;

} // namespace uform
