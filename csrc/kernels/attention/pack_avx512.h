/**
 *  Packs a head's keys and values for products with AVX-512, from F32 or BF16 activations. Included behind a class's
 *  header. Internal linkage: see simd/avx512.h.
 */
#pragma once
#include "../packed.h"

namespace uform {
namespace {

/** 16 F32 as BF16 in the lower halves of 32-bit lanes, to nearest even; no NaN comes here. */
inline __m512i round_to_bf16(float const *pointer) noexcept {
    __m512i bits = _mm512_castps_si512(_mm512_loadu_ps(pointer));
    __m512i lowest = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(_mm512_add_epi32(bits, _mm512_set1_epi32(0x7fff)), lowest);
    return _mm512_srli_epi32(rounded, 16);
}

/** 16 activations as BF16 in the lower halves of 32-bit lanes. */
inline __m512i load_wide(float const *pointer) noexcept { return round_to_bf16(pointer); }
inline __m512i load_wide(bf16_t const *pointer) noexcept {
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<__m256i const *>(pointer)));
}

/** 32 activations as BF16. */
inline __m512i load_line(float const *pointer) noexcept {
    __m256i low = _mm512_cvtepi32_epi16(round_to_bf16(pointer));
    __m256i high = _mm512_cvtepi32_epi16(round_to_bf16(pointer + 16));
    return _mm512_inserti64x4(_mm512_castsi256_si512(low), high, 1);
}
inline __m512i load_line(bf16_t const *pointer) noexcept { return _mm512_loadu_si512(pointer); }

/** Rows of 16 32-bit lanes become columns. */
inline void transpose(__m512i (&rows)[16]) noexcept {
    __m512i turned[16];
    for (size_t i = 0; i != 16; i += 2) {
        turned[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        turned[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
    for (size_t i = 0; i != 16; i += 4) {
        rows[i] = _mm512_unpacklo_epi64(turned[i], turned[i + 2]);
        rows[i + 1] = _mm512_unpackhi_epi64(turned[i], turned[i + 2]);
        rows[i + 2] = _mm512_unpacklo_epi64(turned[i + 1], turned[i + 3]);
        rows[i + 3] = _mm512_unpackhi_epi64(turned[i + 1], turned[i + 3]);
    }
    // Each 128-bit quarter of rows[4 * i + j] now holds column 4 * quarter + j of rows 4 * i up to 4 * i + 3.
    for (size_t j = 0; j != 4; ++j) {
        __m512i low = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0x88);
        __m512i low_odd = _mm512_shuffle_i32x4(rows[j], rows[4 + j], 0xdd);
        __m512i high = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0x88);
        __m512i high_odd = _mm512_shuffle_i32x4(rows[8 + j], rows[12 + j], 0xdd);
        turned[j] = _mm512_shuffle_i32x4(low, high, 0x88);
        turned[8 + j] = _mm512_shuffle_i32x4(low, high, 0xdd);
        turned[4 + j] = _mm512_shuffle_i32x4(low_odd, high_odd, 0x88);
        turned[12 + j] = _mm512_shuffle_i32x4(low_odd, high_odd, 0xdd);
    }
    for (size_t i = 0; i != 16; ++i) rows[i] = turned[i];
}

/** Rows of keys become panels: [padded tokens, dimension], zeros behind the last token. */
template <typename activation_type_>
void pack_keys_avx512(activation_type_ const *keys, size_t stride, size_t count, size_t dimension,
                      bf16_t *out) noexcept {
    size_t const padded = round_up(count, tile_rows_k);
    for (size_t key = 0; key != padded; key += panel_rows_k)
        for (size_t column = 0; column != dimension; column += 32) {
            __m512i rows[16];
            for (size_t row = 0; row != 16; ++row)
                rows[row] =
                    key + row < count ? load_line(keys + (key + row) * stride + column) : _mm512_setzero_si512();
            transpose(rows);
            for (size_t row = 0; row != 16; ++row, out += 32) _mm512_store_si512(out, rows[row]);
        }
}

/** Columns of values become panels: [dimension, padded tokens]. */
template <typename activation_type_>
void pack_values_avx512(activation_type_ const *values, size_t stride, size_t count, size_t dimension,
                        bf16_t *out) noexcept {
    size_t const padded = round_up(count, tile_rows_k);
    for (size_t key = 0; key != padded; key += 2, out += 32)
        for (size_t column = 0; column != dimension; column += panel_rows_k) {
            activation_type_ const *value = values + key * stride + column;
            __m512i even = key < count ? load_wide(value) : _mm512_setzero_si512();
            __m512i odd = key + 1 < count ? load_wide(value + stride) : _mm512_setzero_si512();
            _mm512_store_si512(out + column * padded, _mm512_or_si512(even, _mm512_slli_epi32(odd, 16)));
        }
}

} // namespace
} // namespace uform
