/** Norms over a class's vectors. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include "norm.h"

namespace uform {
namespace {

template <typename simd_type_> float sum_of_squares(float const *row, size_t columns) noexcept {
    using simd_t = simd_type_;
    auto even = simd_t::zero(), odd = simd_t::zero();
    size_t column = 0;
    for (; column + 2 * simd_t::lanes <= columns; column += 2 * simd_t::lanes) {
        auto first = simd_t::load(row + column), second = simd_t::load(row + column + simd_t::lanes);
        even = simd_t::multiply_add(first, first, even);
        odd = simd_t::multiply_add(second, second, odd);
    }
    for (; column < columns; column += simd_t::lanes) {
        size_t left = columns - column;
        auto value = left < simd_t::lanes ? simd_t::load(row + column, left) : simd_t::load(row + column);
        even = simd_t::multiply_add(value, value, even);
    }
    return simd_t::sum(simd_t::add(even, odd));
}

template <typename simd_type_> void normalize(normalize_t const &arguments) noexcept {
    using simd_t = simd_type_;
    using activation_t = typename simd_t::activation_t;
    size_t const columns = arguments.columns;
    for (size_t index = 0; index != arguments.count; ++index) {
        float const *row = arguments.rows + index * columns;
        float mean = sum_of_squares<simd_t>(row, columns) / static_cast<float>(columns);
        auto factor = simd_t::fill(1.f / __builtin_sqrtf(mean + arguments.epsilon));
        auto activations = static_cast<activation_t *>(arguments.activations);
        for (size_t column = 0; column != columns; column += simd_t::lanes) {
            auto value = simd_t::multiply(simd_t::multiply(simd_t::load(row + column), factor),
                                          simd_t::load(arguments.gain + column));
            if (activations) simd_t::store_activations(activations + index * columns + column, value);
            if (arguments.states) simd_t::store(arguments.states + index * columns + column, value);
        }
    }
}

template <typename simd_type_> void unit(float *rows, size_t count, size_t columns) noexcept {
    using simd_t = simd_type_;
    for (size_t index = 0; index != count; ++index) {
        float *row = rows + index * columns;
        float squares = sum_of_squares<simd_t>(row, columns);
        if (squares == 0.f) continue;
        auto factor = simd_t::fill(1.f / __builtin_sqrtf(squares));
        size_t column = 0;
        for (; column + simd_t::lanes <= columns; column += simd_t::lanes)
            simd_t::store(row + column, simd_t::multiply(simd_t::load(row + column), factor));
        if (size_t left = columns - column)
            simd_t::store(row + column, simd_t::multiply(simd_t::load(row + column, left), factor), left);
    }
}

} // namespace
} // namespace uform
