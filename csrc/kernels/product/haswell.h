/**
 *  Products with F32 multiply-adds of 8 lanes: 16 registers hold 6 rows of one panel, so that a tile takes two passes.
 *  A line of BF16 pairs becomes vectors of its even and odd columns by a shift and a mask; E4M3 is decoded to F32, once
 *  for all rows.
 */
#pragma once
#include "../simd/haswell.h"

#include "product.h"

namespace uform {
namespace {

struct haswell_product_t : haswell_t {
    static constexpr size_t product_rows = 6;
    static constexpr size_t pair_step = 1;

    static size_t next_rows(size_t left) noexcept { return even_rows(left, product_rows); }

    /** Even columns of half a line, or odd ones; the mask of those is BF16's. */
    static __m256 load_even(bf16_t const *line, size_t half) noexcept {
        auto const pairs = reinterpret_cast<__m256i const *>(line) + half;
        return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_load_si256(pairs), 16));
    }
    static __m256 load_odd(bf16_t const *line, size_t half, __m256i mask) noexcept {
        auto const pairs = reinterpret_cast<__m256i const *>(line) + half;
        return _mm256_castsi256_ps(_mm256_and_si256(_mm256_load_si256(pairs), mask));
    }
    static __m256 load_even(float const *line, size_t half) noexcept { return _mm256_load_ps(line + 8 * half); }
    static __m256 load_odd(float const *line, size_t half, __m256i) noexcept {
        return _mm256_load_ps(line + 16 + 8 * half);
    }

    using decoded_t = float;
    static constexpr float decoded_unit = 256;

    /**
     *  E4M3 codes, none of them NaN, exactly; `count` is a multiple of 64, `out` aligned to 64 bytes. The bits of a
     * code are those of an F16 whose exponent is 8 too small, subnormal ones included.
     */
    static void decode(e4m3_t const *codes, size_t count, float *out) noexcept {
        __m128i const kept = _mm_set1_epi16(static_cast<short>(0xbf80));
        for (size_t index = 0; index != count; index += 16) {
            __m128i pairs = _mm_loadu_si128(reinterpret_cast<__m128i const *>(codes + index));
            __m128i even = _mm_and_si128(_mm_srai_epi16(_mm_slli_epi16(pairs, 8), 1), kept);
            __m128i odd = _mm_and_si128(_mm_srai_epi16(pairs, 1), kept);
            float *line = out + index / 32 * 32 + index % 32 / 2;
            _mm256_store_ps(line, _mm256_cvtph_ps(even));
            _mm256_store_ps(line + 16, _mm256_cvtph_ps(odd));
        }
    }

    template <typename element_type_, size_t rows_>
    static void panel_of(float const *activations, size_t activation_stride, element_type_ const *panel, size_t pairs,
                         float *out, size_t out_stride) noexcept {
        __m256 sums[rows_][2];
        // Loops over rows are unrolled for good: GCC would keep a copy of the sums in memory otherwise.
#pragma GCC unroll 6
        for (size_t row = 0; row != rows_; ++row) sums[row][0] = sums[row][1] = _mm256_setzero_ps();
        float const *bases[2] = {activations, activations + (rows_ > 3 ? 3 * activation_stride : 0)};
        __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
        for (size_t pair = 0; pair != pairs; ++pair, panel += 32) {
            __m256 left = load_even(panel, 0), right = load_even(panel, 1);
#pragma GCC unroll 6
            for (size_t row = 0; row != rows_; ++row) {
                __m256 activation = _mm256_broadcast_ss(bases[row / 3] + row % 3 * activation_stride);
                sums[row][0] = _mm256_fmadd_ps(activation, left, sums[row][0]);
                sums[row][1] = _mm256_fmadd_ps(activation, right, sums[row][1]);
            }
            // The mask is read from memory: as the sixteenth register in use, it makes GCC spill sums.
            __asm__("" : "+m"(odd));
            left = load_odd(panel, 0, odd), right = load_odd(panel, 1, odd);
#pragma GCC unroll 6
            for (size_t row = 0; row != rows_; ++row) {
                __m256 activation = _mm256_broadcast_ss(bases[row / 3] + row % 3 * activation_stride + 1);
                sums[row][0] = _mm256_fmadd_ps(activation, left, sums[row][0]);
                sums[row][1] = _mm256_fmadd_ps(activation, right, sums[row][1]);
            }
            bases[0] += 2, bases[1] += 2;
        }
#pragma GCC unroll 6
        for (size_t row = 0; row != rows_; ++row) {
            _mm256_storeu_ps(out + row * out_stride, sums[row][0]);
            _mm256_storeu_ps(out + row * out_stride + 8, sums[row][1]);
        }
    }

    template <typename element_type_>
    static void product(size_t rows, float const *activations, size_t activation_stride, element_type_ const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        using element_t = element_type_;
        using panel_t = void (*)(float const *, size_t, element_t const *, size_t, float *, size_t) noexcept;
        static constexpr panel_t products[product_rows] = {panel_of<element_t, 1>, panel_of<element_t, 2>,
                                                           panel_of<element_t, 3>, panel_of<element_t, 4>,
                                                           panel_of<element_t, 5>, panel_of<element_t, 6>};
        products[rows - 1](activations, activation_stride, panels, pairs, out, out_stride);
        products[rows - 1](activations, activation_stride, panels + panel_stride, pairs, out + panel_rows_k,
                           out_stride);
    }
};

} // namespace
} // namespace uform
