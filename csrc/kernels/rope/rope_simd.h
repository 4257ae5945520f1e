/** Head norm and rotary positions over a class's vectors. Included behind its header. Internal linkage: see there. */
#pragma once
#include "rope.h"

namespace uform {
namespace {

template <typename simd_type_> void rope(rope_t const &arguments) noexcept {
    using simd_t = simd_type_;
    using activation_t = typename simd_t::activation_t;
    size_t const dimension = arguments.head_dimension, half = dimension / 2;
    for (size_t index = 0; index != arguments.count; ++index) {
        float const *head = arguments.heads + index * dimension;
        auto out = static_cast<activation_t *>(arguments.activations) + index * arguments.activation_stride;
        if (!arguments.gain) {
            for (size_t j = 0; j != dimension; j += simd_t::lanes)
                simd_t::store_activations(out + j, simd_t::load(head + j));
            continue;
        }
        auto squares = simd_t::zero();
        for (size_t j = 0; j != dimension; j += simd_t::lanes) {
            auto value = simd_t::load(head + j);
            squares = simd_t::multiply_add(value, value, squares);
        }
        float mean = simd_t::sum(squares) / static_cast<float>(dimension);
        auto factor = simd_t::fill(arguments.factor / __builtin_sqrtf(mean + arguments.epsilon));
        float const *cosines = arguments.rotary + arguments.positions[index] * dimension;
        float const *sines = cosines + half;
        for (size_t j = 0; j != half; j += simd_t::lanes) {
            auto a =
                simd_t::multiply(simd_t::multiply(simd_t::load(head + j), simd_t::load(arguments.gain + j)), factor);
            auto b = simd_t::multiply(
                simd_t::multiply(simd_t::load(head + half + j), simd_t::load(arguments.gain + half + j)), factor);
            auto cosine = simd_t::load(cosines + j), sine = simd_t::load(sines + j);
            simd_t::store_activations(out + j,
                                      simd_t::subtract(simd_t::multiply(a, cosine), simd_t::multiply(b, sine)));
            simd_t::store_activations(out + half + j, simd_t::multiply_add(a, sine, simd_t::multiply(b, cosine)));
        }
    }
}

} // namespace
} // namespace uform
