/**
 *  Products with F32 multiply-adds of 16 lanes: a line of BF16 pairs becomes a vector of its even and one of its odd
 *  columns by a shift and a mask, shared by up to 12 rows. 48 multiply-adds a pair of columns stand against 4 such
 *  steps, 2 loads and 24 broadcasts.
 */
#pragma once
#include "../simd/skylake.h"

#include "product.h"

namespace uform {
namespace {

struct skylake_product_t : skylake_t {
    static constexpr size_t product_rows = 12;
    static constexpr size_t pair_step = 1;
    using decoded_t = bf16_t;
    static constexpr float decoded_unit = 1;

    static size_t next_rows(size_t left) noexcept { return even_rows(left, product_rows); }

    template <size_t rows_>
    static void product_of(float const *activations, size_t activation_stride, bf16_t const *panels,
                           size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        __m512 sums[rows_][2];
        // Loops over rows are unrolled for good: GCC would keep a copy of the sums in memory otherwise.
#pragma GCC unroll 12
        for (size_t row = 0; row != rows_; ++row) sums[row][0] = sums[row][1] = _mm512_setzero_ps();
        // Three rows share a base register: base, base + stride and base + 2 * stride are all addressing modes.
        float const *bases[4];
        for (size_t base = 0; base != 4; ++base)
            bases[base] = activations + (3 * base < rows_ ? 3 * base * activation_stride : 0);
        bf16_t const *first = panels, *second = panels + panel_stride;
        __m512i const odd = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
        // Unrolled, since a loop of some dozen rounds ends in a misprediction that costs as much as two of them.
#pragma GCC unroll 2
        for (size_t pair = 0; pair != pairs; ++pair, first += 32, second += 32) {
            __m512i left = _mm512_load_si512(first);
            __m512i right = _mm512_load_si512(second);
            __m512 left_even = _mm512_castsi512_ps(_mm512_slli_epi32(left, 16));
            __m512 right_even = _mm512_castsi512_ps(_mm512_slli_epi32(right, 16));
            __m512 left_odd = _mm512_castsi512_ps(_mm512_and_si512(left, odd));
            __m512 right_odd = _mm512_castsi512_ps(_mm512_and_si512(right, odd));
#pragma GCC unroll 12
            for (size_t row = 0; row != rows_; ++row) {
                float const *pointer = bases[row / 3] + row % 3 * activation_stride;
                __m512 even_activation = _mm512_set1_ps(pointer[0]);
                sums[row][0] = _mm512_fmadd_ps(even_activation, left_even, sums[row][0]);
                sums[row][1] = _mm512_fmadd_ps(even_activation, right_even, sums[row][1]);
                __m512 odd_activation = _mm512_set1_ps(pointer[1]);
                sums[row][0] = _mm512_fmadd_ps(odd_activation, left_odd, sums[row][0]);
                sums[row][1] = _mm512_fmadd_ps(odd_activation, right_odd, sums[row][1]);
            }
            for (size_t base = 0; base != 4; ++base) bases[base] += 2;
        }
#pragma GCC unroll 12
        for (size_t row = 0; row != rows_; ++row) {
            _mm512_storeu_ps(out + row * out_stride, sums[row][0]);
            _mm512_storeu_ps(out + row * out_stride + 16, sums[row][1]);
        }
    }

    static void product(size_t rows, float const *activations, size_t activation_stride, bf16_t const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        using product_t = void (*)(float const *, size_t, bf16_t const *, size_t, size_t, float *, size_t) noexcept;
        static constexpr product_t products[product_rows] = {
            product_of<1>, product_of<2>, product_of<3>, product_of<4>,  product_of<5>,  product_of<6>,
            product_of<7>, product_of<8>, product_of<9>, product_of<10>, product_of<11>, product_of<12>};
        products[rows - 1](activations, activation_stride, panels, panel_stride, pairs, out, out_stride);
    }
};

} // namespace
} // namespace uform
