#if defined(__x86_64__)
#include "media/resize_rows.h"

#include <cstring>

#include "kernels/simd/intrinsics.h"

#define UFORM_TARGET "avx2"
#include "kernels/simd/begin.h"

namespace uform {
namespace {

constexpr size_t lanes_k = 16;

/** Levels as the upper halves of 16 bits, so that the upper half of a product with a weight is what is added. */
__m256i load_levels(uint8_t const *row) noexcept {
    return _mm256_slli_epi16(_mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const *>(row))), 8);
}

void add_lanes(__m256i levels, __m256i weight, uint16_t *sums) noexcept {
    __m256i *const place = reinterpret_cast<__m256i *>(sums);
    _mm256_storeu_si256(place, _mm256_add_epi16(_mm256_loadu_si256(place), _mm256_mulhi_epu16(levels, weight)));
}

void add(uint8_t const *row, size_t count, uint16_t weight, uint16_t *sums) noexcept {
    __m256i const weights = _mm256_set1_epi16(int16_t(weight));
    size_t index = 0;
    for (; index + lanes_k <= count; index += lanes_k) add_lanes(load_levels(row + index), weights, sums + index);
    for (; index != count; ++index) sums[index] = uint16_t(sums[index] + (uint32_t(row[index]) * weight >> 8));
}

void add_twice(uint8_t const *row, size_t count, uint16_t weight, uint16_t *sums, uint16_t other_weight,
               uint16_t *other_sums) noexcept {
    __m256i const weights = _mm256_set1_epi16(int16_t(weight)), others = _mm256_set1_epi16(int16_t(other_weight));
    size_t index = 0;
    for (; index + lanes_k <= count; index += lanes_k) {
        __m256i const levels = load_levels(row + index);
        add_lanes(levels, weights, sums + index);
        add_lanes(levels, others, other_sums + index);
    }
    for (; index != count; ++index) {
        sums[index] = uint16_t(sums[index] + (uint32_t(row[index]) * weight >> 8));
        other_sums[index] = uint16_t(other_sums[index] + (uint32_t(row[index]) * other_weight >> 8));
    }
}

/** Two pixels in each half: red and red, green and green, blue and blue, halved. */
__m256i load_pixels(uint16_t const *pixels) noexcept {
    auto const *const first = reinterpret_cast<__m128i const *>(pixels);
    auto const *const second = reinterpret_cast<__m128i const *>(pixels + 6);
    __m256i const four =
        _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(first)), _mm_loadu_si128(second), 1);
    __m256i const order = _mm256_setr_epi8(0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10, 11, -1, -1, -1, -1, 0, 1, 6, 7, 2, 3, 8, 9,
                                           4, 5, 10, 11, -1, -1, -1, -1);
    return _mm256_srli_epi16(_mm256_shuffle_epi8(four, order), 1);
}

/** Those of two taps in all of a half, and of the next two in the other. */
__m256i load_weights(int16_t const *weights) noexcept {
    int64_t four;
    static_assert(sizeof(four) == column_taps_k * sizeof(*weights));
    std::memcpy(&four, weights, sizeof(four));
    __m256i const order = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    return _mm256_castps_si256(_mm256_permutevar_ps(_mm256_castsi256_ps(_mm256_set1_epi64x(four)), order));
}

void columns(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps, size_t columns,
             uint8_t *to) noexcept {
    constexpr int bits = int(sum_bits_k) - 1 + int(column_weight_bits_k);
    for (size_t column = 0; column != columns; ++column, to += 3) {
        uint16_t const *pixels = from + size_t(firsts[column]) * 3;
        __m256i sums = _mm256_setzero_si256();
        for (size_t tap = 0; tap != taps; tap += column_taps_k) {
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(load_pixels(pixels), load_weights(weights)));
            pixels += column_taps_k * 3, weights += column_taps_k;
        }
        __m128i const sum = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        __m128i const levels = _mm_srai_epi32(_mm_add_epi32(sum, _mm_set1_epi32(1 << (bits - 1))), bits);
        __m128i const words = _mm_packs_epi32(levels, levels);
        int32_t const bytes = _mm_cvtsi128_si32(_mm_packus_epi16(words, words));
        std::memcpy(to, &bytes, sizeof(bytes));
    }
}

__m128i weigh_plane(uint16_t const *pixels, int16_t const *weights, size_t taps) noexcept {
    __m128i sums = _mm_setzero_si128();
    for (size_t tap = 0; tap != taps; tap += plane_taps_k) {
        __m128i const eight = _mm_srli_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const *>(pixels + tap)), 1);
        __m128i const factors = _mm_loadu_si128(reinterpret_cast<__m128i const *>(weights + tap));
        sums = _mm_add_epi32(sums, _mm_madd_epi16(eight, factors));
    }
    return sums;
}

void plane_columns(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps, size_t columns,
                   int16_t *to) noexcept {
    constexpr int bits = int(sum_bits_k) - 1 + int(column_weight_bits_k) - int(plane_bits_k);
    // The last four columns may be some of those before as well.
    for (size_t next = 0; next < columns; next += 4) {
        size_t const column = columns < 4 ? 0 : next + 4 <= columns ? next : columns - 4;
        size_t const second = columns > 1 ? column + 1 : column, third = columns > 2 ? column + 2 : column,
                     fourth = columns > 3 ? column + 3 : column;
        auto const weigh = [&](size_t index) {
            return weigh_plane(from + firsts[index], weights + index * taps, taps);
        };
        __m128i const pairs = _mm_hadd_epi32(weigh(column), weigh(second)),
                      others = _mm_hadd_epi32(weigh(third), weigh(fourth));
        __m128i const sums = _mm_add_epi32(_mm_hadd_epi32(pairs, others), _mm_set1_epi32(1 << (bits - 1)));
        __m128i const words = _mm_packs_epi32(_mm_srai_epi32(sums, bits), _mm_setzero_si128());
        if (columns >= 4) _mm_storel_epi64(reinterpret_cast<__m128i *>(to + column), words);
        else {
            int16_t levels[8];
            _mm_storeu_si128(reinterpret_cast<__m128i *>(levels), words);
            std::memcpy(to, levels, columns * sizeof(*to));
        }
    }
}

} // namespace

constinit resize_rows_t const resize_rows_haswell = {add, add_twice, columns, plane_columns};

} // namespace uform

#include "kernels/simd/end.h"
#endif
