/**
 *  Products with F32 multiply-adds of 8 lanes: 16 registers hold 6 rows of one panel, so that a tile takes two passes.
 *  A line of BF16 pairs becomes vectors of its even and odd columns by a shift and a mask.
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

    template <size_t rows_>
    static void panel_of(float const *activations, size_t activation_stride, bf16_t const *panel, size_t pairs,
                         float *out, size_t out_stride) noexcept {
        __m256 sums[rows_][2];
        // Loops over rows are unrolled for good: GCC would keep a copy of the sums in memory otherwise.
#pragma GCC unroll 6
        for (size_t row = 0; row != rows_; ++row) sums[row][0] = sums[row][1] = _mm256_setzero_ps();
        float const *bases[2] = {activations, activations + (rows_ > 3 ? 3 * activation_stride : 0)};
        __m256i odd = _mm256_set1_epi32(static_cast<int>(0xffff0000u));
        for (size_t pair = 0; pair != pairs; ++pair, panel += 32) {
            auto line = reinterpret_cast<__m256i const *>(panel);
            __m256 left = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_load_si256(line), 16));
            __m256 right = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_load_si256(line + 1), 16));
#pragma GCC unroll 6
            for (size_t row = 0; row != rows_; ++row) {
                __m256 activation = _mm256_broadcast_ss(bases[row / 3] + row % 3 * activation_stride);
                sums[row][0] = _mm256_fmadd_ps(activation, left, sums[row][0]);
                sums[row][1] = _mm256_fmadd_ps(activation, right, sums[row][1]);
            }
            // The mask is read from memory: as the sixteenth register in use, it makes GCC spill sums.
            __asm__("" : "+m"(odd));
            left = _mm256_castsi256_ps(_mm256_and_si256(_mm256_load_si256(line), odd));
            right = _mm256_castsi256_ps(_mm256_and_si256(_mm256_load_si256(line + 1), odd));
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

    static void product(size_t rows, float const *activations, size_t activation_stride, bf16_t const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        using panel_t = void (*)(float const *, size_t, bf16_t const *, size_t, float *, size_t) noexcept;
        static constexpr panel_t products[product_rows] = {panel_of<1>, panel_of<2>, panel_of<3>,
                                                           panel_of<4>, panel_of<5>, panel_of<6>};
        products[rows - 1](activations, activation_stride, panels, pairs, out, out_stride);
        products[rows - 1](activations, activation_stride, panels + panel_stride, pairs, out + panel_rows_k,
                           out_stride);
    }
};

} // namespace
} // namespace uform
