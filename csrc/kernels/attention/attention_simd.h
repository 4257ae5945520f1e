/**
 *  Attention over a class's products. Included behind the class's header. Internal linkage: see there.
 *  `product_type_` adds `product`, `pack_keys` and `pack_values` to the class's vectors.
 */
#pragma once
#include "../simd/math.h"
#include "attention.h"

namespace uform {
namespace {

/** A score of a key that is not attended, and the largest of no scores. Finite, so that differences are numbers. */
constexpr float lowest_k = -1e30f;

constexpr size_t smaller(size_t a, size_t b) noexcept { return a < b ? a : b; }
constexpr size_t larger(size_t a, size_t b) noexcept { return a < b ? b : a; }

/** Scores from `begin` up to `end` are of keys that are not attended. */
template <typename simd_type_> void exclude(float *scores, size_t begin, size_t end) noexcept {
    using simd_t = simd_type_;
    auto const lowest = simd_t::fill(lowest_k);
    for (size_t key = begin, count; key < end; key += count) {
        count = smaller(simd_t::lanes - key % simd_t::lanes, end - key);
        if (count == simd_t::lanes) simd_t::store(scores + key, lowest);
        else simd_t::store(scores + key, lowest, count);
    }
}

/** The largest of the scores, `count` of them, whole vectors, and of `before`. */
template <typename simd_type_> float largest_score(float const *scores, size_t count, float before) noexcept {
    using simd_t = simd_type_;
    auto largest = simd_t::fill(before);
    for (size_t key = 0; key != count; key += simd_t::lanes)
        largest = simd_t::maximum(largest, simd_t::load(scores + key));
    return simd_t::largest(largest);
}

/** Scores of a row become probabilities that are not divided yet; answers a vector whose lanes add up to their sum. */
template <typename simd_type_>
auto exponentiate(float const *scores, size_t count, float maximum, typename simd_type_::activation_t *out) noexcept {
    using simd_t = simd_type_;
    auto sum = simd_t::zero();
    auto const offset = simd_t::fill(maximum);
    for (size_t key = 0; key != count; key += simd_t::lanes) {
        auto power = exp2<simd_t>(simd_t::subtract(simd_t::load(scores + key), offset));
        sum = simd_t::add(sum, power);
        simd_t::store_activations(out + key, power);
    }
    return sum;
}

/** A call at work. */
template <typename product_type_> class attention_pass_t {
    using product_t = product_type_;
    using activation_t = typename product_t::activation_t;
    static constexpr size_t lanes = product_t::lanes, block = attention_block_keys_k, most_rows = attention_most_rows_k;

  public:
    explicit attention_pass_t(attention_t const &arguments) noexcept
        : arguments_(arguments), dimension_(arguments.head_dimension), count_(arguments.count),
          padded_(round_up(count_, tile_rows_k)) {
        keys_ = reinterpret_cast<bf16_t *>(arguments.scratch);
        values_ = keys_ + padded_ * dimension_;
        scores_ = reinterpret_cast<float *>(values_ + padded_ * dimension_);
        probabilities_ = reinterpret_cast<activation_t *>(scores_ + most_rows * block);
        sums_ = scores_ + 2 * most_rows * block;
        part_ = sums_ + most_rows * dimension_;
    }

    void run() noexcept {
        product_t::pack_keys(static_cast<activation_t const *>(arguments_.keys), arguments_.stride, count_, dimension_,
                             keys_);
        product_t::pack_values(static_cast<activation_t const *>(arguments_.values), arguments_.stride, count_,
                               dimension_, values_);
        for (size_t query = arguments_.query_begin, rows; query != arguments_.query_end; query += rows) {
            rows = product_t::next_rows(arguments_.query_end - query);
            attend(query, rows);
        }
    }

  private:
    /** Keys that a query attends: from the first to behind the last one. */
    size_t first(size_t query) const noexcept {
        return arguments_.window && query > arguments_.window ? query - arguments_.window : 0;
    }
    size_t last(size_t query) const noexcept {
        return arguments_.window ? smaller(query + arguments_.window + 1, count_) : count_;
    }

    void attend(size_t query, size_t rows) noexcept {
        for (size_t row = 0; row != most_rows; ++row) maxima_[row] = lowest_k;
        for (size_t i = 0; i != rows * lanes; i += lanes) product_t::store(totals_ + i, product_t::zero());
        // Tiles of keys that no query of these attends are left out. Those that only some attend add exact zeros to the
        // others; before the first key of a row, its sums are of anything, and its first maximum makes them zeros.
        size_t const begin = first(query), end = last(query + rows - 1);
        for (size_t key = begin / block * block; key < end; key += block) {
            size_t const some = larger(key, begin / tile_rows_k * tile_rows_k), more = smaller(key + block, end);
            bool const is_first = key <= begin;
            score(query, rows, some, more);
            weigh(rows, more - some, is_first);
            add(rows, some, more - some, is_first);
        }
        finish(query, rows);
    }

    /** Scores of keys from `begin` up to `end`, which start a row of `scores_`, and those up to a whole vector. */
    void score(size_t query, size_t rows, size_t begin, size_t end) noexcept {
        auto queries = static_cast<activation_t const *>(arguments_.queries) + query * arguments_.stride;
        for (size_t key = begin; key < end; key += tile_rows_k)
            product_t::product(rows, queries, arguments_.stride, keys_ + key * dimension_, dimension_ * panel_rows_k,
                               dimension_ / 2, scores_ + (key - begin), block);
        size_t const keys = whole(end - begin);
        for (size_t row = 0; row != rows; ++row) {
            size_t const low = first(query + row), high = last(query + row);
            if (low > begin) exclude<product_t>(scores_ + row * block, 0, smaller(low - begin, keys));
            if (high < begin + keys) exclude<product_t>(scores_ + row * block, larger(high, begin) - begin, keys);
        }
    }

    /** Scores become probabilities, maxima and totals take them in, `rescale_` becomes the factors of older sums. */
    void weigh(size_t rows, size_t count, bool is_first) noexcept {
        size_t const keys = whole(count);
        for (size_t row = 0; row != rows; ++row) rescale_[row] = maxima_[row];
        for (size_t row = 0; row != rows; ++row)
            maxima_[row] = largest_score<product_t>(scores_ + row * block, keys, maxima_[row]);
        if (!is_first)
            for (size_t row = 0; row < rows; row += lanes)
                product_t::store(rescale_ + row, exp2<product_t>(product_t::subtract(product_t::load(rescale_ + row),
                                                                                     product_t::load(maxima_ + row))));
        for (size_t row = 0; row != rows; ++row) {
            auto sum = exponentiate<product_t>(scores_ + row * block, keys, maxima_[row], probabilities_ + row * block);
            float *totals = totals_ + row * lanes;
            product_t::store(
                totals,
                is_first ? sum : product_t::multiply_add(product_t::load(totals), product_t::fill(rescale_[row]), sum));
        }
    }

    /** Adds probabilities times values to the sums. */
    void add(size_t rows, size_t begin, size_t count, bool is_first) noexcept {
        size_t const pairs = round_up(count, 2 * product_t::pair_step) / 2;
        for (size_t n = 0; n != dimension_; n += tile_rows_k)
            product_t::product(rows, probabilities_, block, values_ + n * padded_ + begin * panel_rows_k,
                               padded_ * panel_rows_k, pairs, (is_first ? sums_ : part_) + n, dimension_);
        if (is_first) return;
        for (size_t row = 0; row != rows; ++row) {
            float *sums = sums_ + row * dimension_, *part = part_ + row * dimension_;
            auto const factor = product_t::fill(rescale_[row]);
            for (size_t n = 0; n != dimension_; n += lanes)
                product_t::store(sums + n,
                                 product_t::multiply_add(product_t::load(sums + n), factor, product_t::load(part + n)));
        }
    }

    void finish(size_t query, size_t rows) noexcept {
        for (size_t row = 0; row != rows; ++row) {
            auto out = static_cast<activation_t *>(arguments_.out) + (query + row) * arguments_.out_stride;
            auto const total = product_t::fill(1.f / product_t::sum(product_t::load(totals_ + row * lanes)));
            for (size_t n = 0; n != dimension_; n += lanes)
                product_t::store_activations(out + n,
                                             product_t::multiply(product_t::load(sums_ + row * dimension_ + n), total));
        }
    }

    /** Keys whose probabilities are needed: whole vectors, and all that a product reads. */
    static constexpr size_t whole(size_t keys) noexcept {
        return round_up(keys, larger(lanes, 2 * product_t::pair_step));
    }

    attention_t const &arguments_;
    size_t const dimension_, count_, padded_;
    bf16_t *keys_;                /**< [padded tokens, dimension], packed. */
    bf16_t *values_;              /**< [dimension, padded tokens], packed. */
    float *scores_;               /**< [rows, block] */
    activation_t *probabilities_; /**< [rows, block] */
    float *sums_;                 /**< [rows, dimension] */
    float *part_;                 /**< [rows, dimension], of one block of keys. */
    alignas(64) float maxima_[most_rows] = {};
    alignas(64) float rescale_[most_rows] = {};
    alignas(64) float totals_[most_rows * lanes];
};

template <typename product_type_> void attention(attention_t const &arguments) noexcept {
    attention_pass_t<product_type_>(arguments).run();
}

} // namespace
} // namespace uform
