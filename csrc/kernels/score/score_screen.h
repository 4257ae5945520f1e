/** Screens over a class's BF16 products. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include <cstring>

#include "../product/product.h"
#include "prefetch.h"
#include "score.h"

namespace uform {
namespace {

/** The first `count` of 16 numbers, the others zero. */
inline __m512 load_first(float const *numbers, size_t count) noexcept {
    return _mm512_maskz_loadu_ps(count < 16 ? __mmask16((1u << count) - 1) : __mmask16(0xffff), numbers);
}

/** Rounds rows to BF16, padded with zeros, and answers the largest square of their lengths. */
inline float round_rows(float const *rows, size_t stride, size_t count, size_t width, bf16_t *rounded) noexcept {
    size_t const whole = width / 32 * 32, left = width - whole;
    float largest = 0;
    for (size_t row = 0; row != count; ++row, rows += stride, rounded += whole + (left ? 32 : 0)) {
        prefetch_rows(rows, stride * sizeof(float));
        __m512 lower_squares = _mm512_setzero_ps(), upper_squares = _mm512_setzero_ps();
        auto const round = [&](size_t column, __m512 lower, __m512 upper) noexcept {
            lower_squares = _mm512_fmadd_ps(lower, lower, lower_squares);
            upper_squares = _mm512_fmadd_ps(upper, upper, upper_squares);
            _mm512_store_si512(rounded + column, (__m512i)_mm512_cvtne2ps_pbh(upper, lower));
        };
        for (size_t column = 0; column != whole; column += 32)
            round(column, _mm512_loadu_ps(rows + column), _mm512_loadu_ps(rows + column + 16));
        if (left)
            round(whole, load_first(rows + whole, left),
                  left > 16 ? load_first(rows + whole + 16, left - 16) : _mm512_setzero_ps());
        float const square = _mm512_reduce_add_ps(_mm512_add_ps(lower_squares, upper_squares));
        // What is not a number stays.
        largest = square <= largest ? largest : square;
    }
    return largest;
}

/**
 *  F32 products of 16 pairs of a row and a lane, in the order of the columns, as F32 kernels have it. Four columns at
 *  once: four numbers of each row come in a quarter of a vector, and change places with those of three other rows.
 */
inline __m512 multiply_pairs(float const *const *rows, __m512i lanes, float const *queries, size_t width) noexcept {
    __m512 sums = _mm512_setzero_ps();
    for (size_t column = 0; column < width; column += 4) {
        size_t const some = width - column < 4 ? width - column : 4;
        __mmask8 const mask = __mmask8((1u << some) - 1);
        __m512 numbers[4];
#pragma GCC unroll 4
        for (size_t part = 0; part != 4; ++part) {
            auto const load = [&](size_t quarter) noexcept {
                return _mm_maskz_loadu_ps(mask, rows[4 * quarter + part] + column);
            };
            __m512 const first = _mm512_castps128_ps512(load(0));
            __m512 const second = _mm512_insertf32x4(first, load(1), 1);
            numbers[part] = _mm512_insertf32x4(_mm512_insertf32x4(second, load(2), 2), load(3), 3);
        }
        __m512d const low = _mm512_castps_pd(_mm512_unpacklo_ps(numbers[0], numbers[1]));
        __m512d const low_other = _mm512_castps_pd(_mm512_unpacklo_ps(numbers[2], numbers[3]));
        __m512d const high = _mm512_castps_pd(_mm512_unpackhi_ps(numbers[0], numbers[1]));
        __m512d const high_other = _mm512_castps_pd(_mm512_unpackhi_ps(numbers[2], numbers[3]));
        numbers[0] = _mm512_castpd_ps(_mm512_unpacklo_pd(low, low_other));
        numbers[1] = _mm512_castpd_ps(_mm512_unpackhi_pd(low, low_other));
        numbers[2] = _mm512_castpd_ps(_mm512_unpacklo_pd(high, high_other));
        numbers[3] = _mm512_castpd_ps(_mm512_unpackhi_pd(high, high_other));
#pragma GCC unroll 4
        for (size_t part = 0; part != 4; ++part) {
            if (part >= some) break;
            float const *const query = queries + (column + part) * score_lanes_k;
            __m512 const chosen = _mm512_permutex2var_ps(_mm512_load_ps(query), lanes, _mm512_load_ps(query + 16));
            sums = _mm512_fmadd_ps(numbers[part], chosen, sums);
        }
    }
    return sums;
}

template <typename product_type_> bool screen(score_screen_t const &arguments) noexcept {
    using product_t = product_type_;
    constexpr size_t lanes = score_lanes_k, pairs_at_once = 16;
    score_t const &score = arguments.score;
    size_t const padded = round_up(score.width, padding_columns_k), panel_stride = padded * panel_rows_k;
    size_t const stride = score.row_bytes / sizeof(float);
    auto const *rows = static_cast<float const *>(score.rows);
    auto *scores = reinterpret_cast<float *>(arguments.scratch);
    auto *rounded = reinterpret_cast<bf16_t *>(scores + (score_screen_rows_k + score_slack_rows_k) * lanes);

    float largest_square = 0;
    for (size_t row = 0, some; row != score.count; row += some) {
        some = product_t::next_rows(score.count - row);
        float const square = round_rows(rows + row * stride, stride, some, score.width, rounded);
        largest_square = square <= largest_square ? largest_square : square;
        product_t::product(some, rounded, padded, static_cast<bf16_t const *>(score.queries), panel_stride, padded / 2,
                           scores + row * lanes, lanes);
    }
    // Otherwise squares, products, or what rounding leaves of small numbers would be out of range.
    if (!(largest_square >= 1e-20f && largest_square <= 1e20f)) return false;

    __m512 best[2] = {_mm512_loadu_ps(scores), _mm512_loadu_ps(scores + 16)}, least[2];
    for (size_t row = 1; row != score.count; ++row)
        for (size_t half = 0; half != 2; ++half)
            best[half] = _mm512_max_ps(best[half], _mm512_loadu_ps(scores + row * lanes + half * 16));
    __m512 const length = _mm512_set1_ps(__builtin_sqrtf(largest_square) * 1.001f);
    for (size_t half = 0; half != 2; ++half) {
        __m512 const error = _mm512_mul_ps(_mm512_loadu_ps(arguments.errors + half * 16), length);
        // The best product is at least `best - error`, and so are rounded ones of rows that reach it, less an error.
        __m512 const known = _mm512_sub_ps(_mm512_loadu_ps(arguments.maxima + half * 16), error);
        least[half] = _mm512_max_ps(known, _mm512_fnmadd_ps(_mm512_set1_ps(2), error, best[half]));
    }

    // As many pairs as rows take longer than F32 products of all rows with all queries.
    int32_t pair_rows[score_screen_rows_k + lanes], pair_lanes[score_screen_rows_k + lanes];
    size_t pairs = 0;
    uint32_t const used = uint32_t((uint64_t(1) << arguments.query_count) - 1);
    for (size_t row = 0; row != score.count; ++row) {
        float const *const row_scores = scores + row * lanes;
        // Not less: what is not a number is a pair.
        uint32_t const lower = _mm512_cmp_ps_mask(_mm512_loadu_ps(row_scores), least[0], _CMP_NLT_UQ);
        uint32_t const upper = _mm512_cmp_ps_mask(_mm512_loadu_ps(row_scores + 16), least[1], _CMP_NLT_UQ);
        for (uint32_t left = (lower | upper << 16) & used; left; left &= left - 1) {
            pair_rows[pairs] = int32_t(row), pair_lanes[pairs] = __builtin_ctz(left);
            ++pairs;
        }
        if (pairs >= score_screen_rows_k) return false;
    }
    for (size_t first = 0; first < pairs; first += pairs_at_once) {
        size_t const some = pairs - first < pairs_at_once ? pairs - first : pairs_at_once;
        float const *pair_numbers[pairs_at_once];
        for (size_t pair = 0; pair != pairs_at_once; ++pair)
            pair_numbers[pair] = rows + size_t(pair_rows[pair < some ? first + pair : first]) * stride;
        alignas(64) float sums[pairs_at_once];
        // Lanes behind the last pair are none that count.
        _mm512_store_ps(sums, multiply_pairs(pair_numbers, _mm512_loadu_si512(pair_lanes + first),
                                             static_cast<float const *>(arguments.queries), score.width));
        for (size_t pair = 0; pair != some; ++pair) {
            float &maximum = arguments.maxima[pair_lanes[first + pair]];
            maximum = sums[pair] > maximum ? sums[pair] : maximum;
        }
    }
    return true;
}

} // namespace
} // namespace uform
