/**
 *  Norms of rows.
 *
 *  `normalize`, RMSNorm (Zhang and Sennrich, 2019): out = x / sqrt(mean(x^2) + epsilon) * gain.
 *  `unit`, in place: x / |x|; a row of zeros stays.
 *
 *  F32 sums in one order for a row's length. Relative tolerance: 2e-6, and the rounding of BF16 activations.
 *  Work: 4 FLOP an element; bytes: the rows once each way.
 */
#pragma once
#include <cstddef>

namespace uform {

struct normalize_t {
    float const *rows = nullptr; /**< [count, columns] without gaps. */
    size_t count = 0;
    size_t columns = 0;
    float const *gain = nullptr; /**< [columns] */
    float epsilon = 0;
    void *activations = nullptr; /**< [count, columns] of the class's activations, or nullptr. */
    float *states = nullptr;     /**< The same in F32, or nullptr. */
};

void normalize_serial(normalize_t const &arguments) noexcept;
void normalize_haswell(normalize_t const &arguments) noexcept;
void normalize_skylake(normalize_t const &arguments) noexcept;
void normalize_genoa(normalize_t const &arguments) noexcept;

void unit_serial(float *rows, size_t count, size_t columns) noexcept;
void unit_haswell(float *rows, size_t count, size_t columns) noexcept;
void unit_skylake(float *rows, size_t count, size_t columns) noexcept;

} // namespace uform
