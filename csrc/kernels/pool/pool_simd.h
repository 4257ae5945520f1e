/** Mean pooling over a class's vectors. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include "pool.h"

namespace uform {
namespace {

template <typename simd_type_> void pool(pooling_t const &arguments) noexcept {
    using simd_t = simd_type_;
    constexpr size_t lanes = simd_t::lanes, vectors = 32 / lanes < 4 ? 32 / lanes : 4;
    auto const count = simd_t::fill(static_cast<float>(arguments.count));
    auto activations = static_cast<typename simd_t::activation_t *>(arguments.activations);
    // A few vectors at a time, so that the additions of one need not wait for each other.
    for (size_t column = arguments.column_begin; column != arguments.column_end; column += vectors * lanes) {
        typename simd_t::vector_t sums[vectors];
        for (auto &sum : sums) sum = simd_t::zero();
        float const *row = arguments.rows + column;
        for (size_t index = 0; index != arguments.count; ++index, row += arguments.columns)
            for (size_t i = 0; i != vectors; ++i) sums[i] = simd_t::add(sums[i], simd_t::load(row + i * lanes));
        for (size_t i = 0; i != vectors; ++i)
            simd_t::store_activations(activations + column + i * lanes, simd_t::divide(sums[i], count));
    }
}

} // namespace
} // namespace uform
