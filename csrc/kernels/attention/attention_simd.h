/**
 *  Attention over a class's products. Included behind the class's header. Internal linkage: see there.
 *  `product_type_` adds `product`, `pack_keys` and `pack_values` to the class's vectors.
 */
#pragma once
#include "../simd/math.h"
#include "attention.h"

namespace uform {
namespace {

constexpr float lowest_k = -__builtin_inff();

/** What a call keeps in its scratch. */
template <typename activation_type_> struct attention_scratch_t {
    bf16_t *keys;                    /**< [padded tokens, dimension], packed. */
    bf16_t *values;                  /**< [dimension, padded tokens], packed. */
    float *scores;                   /**< [rows, block] */
    activation_type_ *probabilities; /**< [rows, block] */
    float *sums;                     /**< [rows, dimension] */
    float *part;                     /**< [rows, dimension], of one block of keys. */

    attention_scratch_t(std::byte *scratch, size_t padded, size_t dimension) noexcept {
        keys = reinterpret_cast<bf16_t *>(scratch);
        values = keys + padded * dimension;
        scores = reinterpret_cast<float *>(values + padded * dimension);
        float *after = scores + attention_most_rows_k * attention_block_keys_k;
        probabilities = reinterpret_cast<activation_type_ *>(after);
        sums = after + attention_most_rows_k * attention_block_keys_k;
        part = sums + attention_most_rows_k * dimension;
    }
};

/** Turns a row of scores of a block into probabilities that are not divided yet, and answers their sum. */
template <typename simd_type_>
float exponentiate(float const *scores, size_t count, float maximum, typename simd_type_::activation_t *out) noexcept {
    using simd_t = simd_type_;
    auto sum = simd_t::zero();
    auto const offset = simd_t::fill(maximum);
    for (size_t key = 0; key != count; key += simd_t::lanes) {
        auto power = exp2<simd_t>(simd_t::subtract(simd_t::load(scores + key), offset));
        sum = simd_t::add(sum, power);
        simd_t::store_activations(out + key, power);
    }
    return simd_t::sum(sum);
}

template <typename simd_type_> float largest_score(float const *scores, size_t count) noexcept {
    using simd_t = simd_type_;
    auto largest = simd_t::fill(lowest_k);
    for (size_t key = 0; key != count; key += simd_t::lanes)
        largest = simd_t::maximum(largest, simd_t::load(scores + key));
    return simd_t::largest(largest);
}

template <typename product_type_> void attention(attention_t const &arguments) noexcept {
    using product_t = product_type_;
    using activation_t = typename product_t::activation_t;
    size_t const dimension = arguments.head_dimension, count = arguments.count, window = arguments.window;
    size_t const padded = round_up(count, tile_rows_k), block = attention_block_keys_k;
    attention_scratch_t<activation_t> scratch(arguments.scratch, padded, dimension);
    product_t::pack_keys(static_cast<activation_t const *>(arguments.keys), arguments.stride, count, dimension,
                         scratch.keys);
    product_t::pack_values(static_cast<activation_t const *>(arguments.values), arguments.stride, count, dimension,
                           scratch.values);

    for (size_t query = arguments.query_begin, rows; query != arguments.query_end; query += rows) {
        rows = product_t::next_rows(arguments.query_end - query);
        auto queries = static_cast<activation_t const *>(arguments.queries) + query * arguments.stride;
        float maxima[attention_most_rows_k], totals[attention_most_rows_k];
        for (size_t row = 0; row != rows; ++row) maxima[row] = lowest_k, totals[row] = 0.f;

        // Blocks that no query of these attends are left out; one that only some attend adds exact zeros to the others.
        size_t const first = window && query > window ? (query - window) / block * block : 0;
        size_t const last = window && query + rows + window < padded ? query + rows + window : padded;
        for (size_t key = first; key < last; key += block) {
            size_t const keys = padded - key < block ? padded - key : block;
            for (size_t tile = 0; tile != keys / tile_rows_k; ++tile)
                product_t::product(rows, queries, arguments.stride,
                                   scratch.keys + (key + tile * tile_rows_k) * dimension, dimension * panel_rows_k,
                                   dimension / 2, scratch.scores + tile * tile_rows_k, block);

            float rescale[attention_most_rows_k];
            for (size_t row = 0; row != rows; ++row) {
                float *scores = scratch.scores + row * block;
                size_t const center = query + row;
                size_t const low = window && center > window ? center - window : 0;
                size_t const high = window && center + window + 1 < count ? center + window + 1 : count;
                for (size_t n = 0; n < keys && key + n < low; ++n) scores[n] = lowest_k;
                for (size_t n = high > key ? high - key : 0; n < keys; ++n) scores[n] = lowest_k;
                float const before = maxima[row], among = largest_score<product_t>(scores, keys);
                float const maximum = before > among ? before : among;
                maxima[row] = maximum;
                float powers[product_t::lanes];
                product_t::store(powers, exp2<product_t>(product_t::fill(before - maximum)));
                rescale[row] = powers[0];
                float sum = exponentiate<product_t>(scores, keys, maximum, scratch.probabilities + row * block);
                totals[row] = totals[row] * rescale[row] + sum;
            }

            for (size_t tile = 0; tile != dimension / tile_rows_k; ++tile)
                product_t::product(rows, scratch.probabilities, block,
                                   scratch.values + tile * tile_rows_k * padded + key * panel_rows_k,
                                   padded * panel_rows_k, keys / 2,
                                   (key == first ? scratch.sums : scratch.part) + tile * tile_rows_k, dimension);
            if (key == first) continue;
            for (size_t row = 0; row != rows; ++row) {
                float *sums = scratch.sums + row * dimension, *part = scratch.part + row * dimension;
                auto const factor = product_t::fill(rescale[row]);
                for (size_t n = 0; n != dimension; n += product_t::lanes)
                    product_t::store(sums + n, product_t::multiply_add(product_t::load(sums + n), factor,
                                                                       product_t::load(part + n)));
            }
        }

        for (size_t row = 0; row != rows; ++row) {
            auto out = static_cast<activation_t *>(arguments.out) + (query + row) * arguments.out_stride;
            auto const total = product_t::fill(1.f / totals[row]);
            for (size_t n = 0; n != dimension; n += product_t::lanes)
                product_t::store_activations(
                    out + n, product_t::multiply(product_t::load(scratch.sums + row * dimension + n), total));
        }
    }
}

} // namespace
} // namespace uform
