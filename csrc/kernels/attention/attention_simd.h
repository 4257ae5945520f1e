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
template <typename simd_type_> void exclude_scores(float *scores, size_t begin, size_t end) noexcept {
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

/**
 *  Scores of a row become probabilities that are not divided yet; answers a vector whose lanes add up to their sum.
 *  Bounded ones are powers of the scores as they are, without the maximum.
 */
template <typename simd_type_, bool bounded_>
auto powers(float const *scores, size_t count, float maximum, typename simd_type_::activation_t *out) noexcept {
    using simd_t = simd_type_;
    auto sum = simd_t::zero();
    auto const offset = simd_t::fill(maximum);
    for (size_t key = 0; key != count; key += simd_t::lanes) {
        auto score = simd_t::load(scores + key);
        if constexpr (!bounded_) score = simd_t::subtract(score, offset);
        auto power = exp2<simd_t>(score);
        sum = simd_t::add(sum, power);
        simd_t::store_activations(out + key, power);
    }
    return sum;
}

/**
 *  A call at work: steps of some queries by a block of keys each. The next step's products of queries and keys are made
 *  among this one's exponentials, so that a processor whose products are a unit apart, as AMX is, has work for both.
 */
template <typename product_type_, bool bounded_> class attention_pass_t {
    using product_t = product_type_;
    using activation_t = typename product_t::activation_t;
    static constexpr size_t lanes = product_t::lanes, block = attention_block_keys_k, most_rows = attention_most_rows_k;

    /** Queries from `query`, by keys from `begin` to `end`; no rows: no step. */
    struct step_t {
        size_t query = 0, rows = 0;
        size_t begin = 0, end = 0;
        bool is_first = true, is_last = false; /**< Of the steps of these queries. */

        size_t keys() const noexcept { return end - begin; }
    };

  public:
    explicit attention_pass_t(attention_t const &arguments) noexcept
        : arguments_(arguments), dimension_(arguments.head_dimension), count_(arguments.count),
          padded_(round_up(count_, tile_rows_k)) {
        keys_ = reinterpret_cast<bf16_t *>(arguments.scratch);
        values_ = keys_ + padded_ * dimension_;
        scores_ = reinterpret_cast<float *>(values_ + padded_ * dimension_);
        next_scores_ = scores_ + most_rows * block;
        probabilities_ = reinterpret_cast<activation_t *>(next_scores_ + most_rows * block);
        sums_ = next_scores_ + 2 * most_rows * block;
        part_ = sums_ + most_rows * dimension_;
    }

    void run() noexcept {
        product_t::pack_keys(static_cast<activation_t const *>(arguments_.keys), arguments_.stride, count_, dimension_,
                             keys_);
        product_t::pack_values(static_cast<activation_t const *>(arguments_.values), arguments_.stride, count_,
                               dimension_, values_);
        step_t step = first_step(arguments_.query_begin);
        for (size_t tile = 0; tile < step.keys(); tile += tile_rows_k) score(step, tile, scores_);
        while (step.rows) {
            step_t const next = step.is_last ? first_step(step.query + step.rows) : step_at(step, step.end);
            exclude(step);
            if constexpr (!bounded_) find_maxima(step);
            exponentiate(step, next);
            add(step);
            if (step.is_last) finish(step);
            float *const scores = scores_;
            scores_ = next_scores_, next_scores_ = scores;
            step = next;
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

    step_t first_step(size_t query) const noexcept {
        step_t step;
        if (query == arguments_.query_end) return step;
        step.query = query;
        step.rows = product_t::next_rows(arguments_.query_end - query);
        return step_at(step, first(query) / tile_rows_k * tile_rows_k);
    }

    /**
     *  The step of a step's queries from a key on, to the end of a block. Tiles of keys that none of them attends are
     *  left out. Those that only some attend add exact zeros to the others; before the first key of a query, its sums
     *  are of anything, and its first maximum makes them zeros.
     */
    step_t step_at(step_t step, size_t key) const noexcept {
        size_t const end = last(step.query + step.rows - 1);
        step.is_first = key <= first(step.query);
        step.begin = key;
        step.end = smaller(key / block * block + block, end);
        step.is_last = step.end == end;
        return step;
    }

    /** Scores of a tile of a step's keys, `tile` keys behind its first. */
    void score(step_t const &step, size_t tile, float *scores) const noexcept {
        auto queries = static_cast<activation_t const *>(arguments_.queries) + step.query * arguments_.stride;
        product_t::product(step.rows, queries, arguments_.stride, keys_ + (step.begin + tile) * dimension_,
                           dimension_ * panel_rows_k, dimension_ / 2, scores + tile, block);
    }

    void exclude(step_t const &step) const noexcept {
        size_t const keys = whole(step.keys());
        for (size_t row = 0; row != step.rows; ++row) {
            float *scores = scores_ + row * block;
            size_t const low = first(step.query + row), high = last(step.query + row);
            if (low > step.begin) exclude_scores<product_t>(scores, 0, smaller(low - step.begin, keys));
            if (high < step.begin + keys)
                exclude_scores<product_t>(scores, larger(high, step.begin) - step.begin, keys);
        }
    }

    /** Takes scores into the maxima; `rescale_` becomes the factors of older sums. */
    void find_maxima(step_t const &step) noexcept {
        size_t const keys = whole(step.keys());
        if (step.is_first)
            for (size_t row = 0; row != most_rows; ++row) maxima_[row] = lowest_k;
        for (size_t row = 0; row != step.rows; ++row) {
            rescale_[row] = maxima_[row];
            maxima_[row] = largest_score<product_t>(scores_ + row * block, keys, maxima_[row]);
        }
        if (step.is_first) return;
        for (size_t row = 0; row < step.rows; row += lanes)
            product_t::store(rescale_ + row, exp2<product_t>(product_t::subtract(product_t::load(rescale_ + row),
                                                                                 product_t::load(maxima_ + row))));
    }

    /** Scores become probabilities, and the next step's are made. */
    void exponentiate(step_t const &step, step_t const &next) noexcept {
        size_t const keys = whole(step.keys()),
                     tiles = next.rows ? round_up(next.keys(), tile_rows_k) / tile_rows_k : 0;
        size_t tile = 0;
        for (size_t row = 0; row != step.rows; ++row) {
            for (; tile * step.rows < (row + 1) * tiles; ++tile) score(next, tile * tile_rows_k, next_scores_);
            auto sum =
                powers<product_t, bounded_>(scores_ + row * block, keys, maxima_[row], probabilities_ + row * block);
            float *totals = totals_ + row * lanes;
            product_t::store(totals, step.is_first ? sum : added(product_t::load(totals), row, sum));
        }
    }

    /** Adds probabilities times values to the sums. */
    void add(step_t const &step) noexcept {
        size_t const pairs = round_up(step.keys(), 2 * product_t::pair_step) / 2;
        for (size_t n = 0; n != dimension_; n += tile_rows_k)
            product_t::product(step.rows, probabilities_, block, values_ + n * padded_ + step.begin * panel_rows_k,
                               padded_ * panel_rows_k, pairs, (step.is_first ? sums_ : part_) + n, dimension_);
        if (step.is_first) return;
        for (size_t row = 0; row != step.rows; ++row) {
            float *sums = sums_ + row * dimension_, *part = part_ + row * dimension_;
            for (size_t n = 0; n != dimension_; n += lanes)
                product_t::store(sums + n, added(product_t::load(sums + n), row, product_t::load(part + n)));
        }
    }

    /** A row's older sums and newer ones. */
    auto added(typename product_t::vector_t older, size_t row, typename product_t::vector_t newer) const noexcept {
        if constexpr (bounded_) return product_t::add(older, newer);
        else return product_t::multiply_add(older, product_t::fill(rescale_[row]), newer);
    }

    void finish(step_t const &step) noexcept {
        for (size_t row = 0; row != step.rows; ++row) {
            auto out = static_cast<activation_t *>(arguments_.out) + (step.query + row) * arguments_.out_stride;
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
    float *scores_;               /**< [rows, block], of a step. */
    float *next_scores_;          /**< [rows, block], of the next step. */
    activation_t *probabilities_; /**< [rows, block], not divided yet. */
    float *sums_;                 /**< [rows, dimension] */
    float *part_;                 /**< [rows, dimension], of a step. */
    alignas(64) float maxima_[most_rows] = {};
    alignas(64) float rescale_[most_rows] = {};
    alignas(64) float totals_[most_rows * lanes]; /**< A vector a row, whose lanes add up to the total. */
};

template <typename product_type_> void attention(attention_t const &arguments) noexcept {
    if (arguments.bounded) attention_pass_t<product_type_, true>(arguments).run();
    else attention_pass_t<product_type_, false>(arguments).run();
}

} // namespace
} // namespace uform
