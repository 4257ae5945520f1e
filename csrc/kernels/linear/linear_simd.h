/** The linear layer over a class's products. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include "../simd/math.h"
#include "linear.h"

namespace uform {
namespace {

/** A block of sums, [rows, 32] without gaps. */
struct block_t {
    float *sums = nullptr;
    size_t rows = 0;
    size_t outputs = 0; /**< Those of the 32 that exist. */
    float const *scales = nullptr;
    void *out = nullptr; /**< Of the first of them. */
};

/** The block of a tile by `rows` rows from `row` on. */
template <typename simd_type_>
block_t block_of(linear_t const &arguments, size_t tile, size_t row, size_t rows, float *sums) noexcept {
    using activation_t = typename simd_type_::activation_t;
    packed_t const &weights = *arguments.weights;
    size_t const left = weights.rows - tile * tile_rows_k, index = tile - arguments.tile_begin;
    bool const activate = arguments.epilogue == epilogue_t::activate_k;
    size_t const offset = row * arguments.out_stride + index * (activate ? panel_rows_k : tile_rows_k);
    block_t block {sums, rows};
    block.outputs = left < tile_rows_k ? left : tile_rows_k;
    block.scales = weights.scales ? weights.scales + tile * tile_rows_k : nullptr;
    block.out = activate ? static_cast<void *>(static_cast<activation_t *>(arguments.out) + offset)
                         : static_cast<void *>(static_cast<float *>(arguments.out) + offset);
    return block;
}

/** What becomes of a block of sums. */
template <typename simd_type_>
void finish_block(block_t const &block, epilogue_t epilogue, size_t out_stride) noexcept {
    using simd_t = simd_type_;
    using activation_t = typename simd_t::activation_t;
    if (block.scales)
        for (size_t n = 0; n != tile_rows_k; n += simd_t::lanes) {
            auto const unit = simd_t::fill(simd_t::decoded_unit);
            auto const scales = simd_t::multiply(simd_t::load(block.scales + n), unit);
            for (size_t row = 0; row != block.rows; ++row) {
                float *sums = block.sums + row * tile_rows_k + n;
                simd_t::store(sums, simd_t::multiply(simd_t::load(sums), scales));
            }
        }
    for (size_t row = 0; row != block.rows; ++row) {
        float const *sums = block.sums + row * tile_rows_k;
        if (epilogue == epilogue_t::activate_k) {
            auto destination = static_cast<activation_t *>(block.out) + row * out_stride;
            for (size_t n = 0; n != panel_rows_k; n += simd_t::lanes) {
                auto gate = silu<simd_t>(simd_t::load(sums + n));
                simd_t::store_activations(destination + n,
                                          simd_t::multiply(gate, simd_t::load(sums + panel_rows_k + n)));
            }
            continue;
        }
        auto destination = static_cast<float *>(block.out) + row * out_stride;
        bool const add = epilogue == epilogue_t::add_k;
        size_t n = 0;
        for (; n + simd_t::lanes <= block.outputs; n += simd_t::lanes) {
            auto sum = simd_t::load(sums + n);
            simd_t::store(destination + n, add ? simd_t::add(simd_t::load(destination + n), sum) : sum);
        }
        if (size_t left = block.outputs - n) {
            auto sum = simd_t::load(sums + n, left);
            simd_t::store(destination + n, add ? simd_t::add(simd_t::load(destination + n, left), sum) : sum, left);
        }
    }
}

/**
 *  `product_type_` adds `product` to the class's vectors, and `decode(codes, count, out)` from E4M3; where it can,
 *  `decode_product`, which decodes a tile on the way through its first product: lookups then cost no time of their own
 *  beside the multiplications.
 */
template <typename product_type_> void linear(linear_t const &arguments) noexcept {
    using product_t = product_type_;
    using activation_t = typename product_t::activation_t;
    packed_t const &weights = *arguments.weights;
    auto const decoded = static_cast<typename product_t::decoded_t *>(arguments.decoded);
    constexpr bool decodes_in_product = requires { &product_t::decode_product; };
    size_t const pairs = weights.padded_columns() / 2;
    size_t const panel_stride = pairs * 2 * panel_rows_k, tile_size = 2 * panel_stride;
    alignas(64) float sums[product_t::product_rows * tile_rows_k];

    for (size_t tile = arguments.tile_begin; tile != arguments.tile_end; ++tile) {
        e4m3_t const *codes = weights.data_e4m3 ? weights.data_e4m3 + tile * tile_size : nullptr;
        if constexpr (!decodes_in_product)
            if (codes) product_t::decode(codes, tile_size, decoded);
        auto activations = static_cast<activation_t const *>(arguments.activations);
        for (size_t row = 0, rows; row != arguments.rows; row += rows) {
            rows = product_t::next_rows(arguments.rows - row);
            auto const mine = activations + row * arguments.activation_stride;
            auto const multiply = [&](auto const *panels) {
                product_t::product(rows, mine, arguments.activation_stride, panels, panel_stride, pairs, sums,
                                   tile_rows_k);
            };
            if (!codes) multiply(weights.data + tile * tile_size);
            else if (row || !decodes_in_product) multiply(decoded);
            else if constexpr (decodes_in_product)
                product_t::decode_product(rows, mine, arguments.activation_stride, codes, decoded, panel_stride, pairs,
                                          sums, tile_rows_k);
            finish_block<product_t>(block_of<product_t>(arguments, tile, row, rows, sums), arguments.epilogue,
                                    arguments.out_stride);
        }
    }
}

} // namespace
} // namespace uform
