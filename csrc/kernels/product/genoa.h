/**
 *  Products with VDPBF16PS: two BF16 pairs a lane, 24 accumulators of 32 registers. Per pair of columns 24 products
 *  stand against 2 loads of a line and 12 broadcasts, so that the multipliers are the limit as long as the tile's
 *  lines come from L1 or L2: 94-98% of 64 FLOP a cycle were measured on Zen 4.
 */
#pragma once
#include "../simd/genoa.h"

#include "product.h"

namespace uform {
namespace {

struct genoa_product_t : genoa_t {
    static constexpr size_t product_rows = 12;
    static constexpr size_t pair_step = 1;
    using decoded_t = bf16_t;
    static constexpr float decoded_unit = 1;

    static size_t next_rows(size_t left) noexcept { return even_rows(left, product_rows); }

    /** Lines of a tile in BF16. */
    struct bf16_lines_t {
        bf16_t const *first, *second;

        void next(__m512i &left, __m512i &right) noexcept {
            left = _mm512_load_si512(first), right = _mm512_load_si512(second);
            first += 32, second += 32;
        }
    };

    /** Lines of a tile in E4M3, which stay behind in BF16. */
    struct e4m3_lines_t {
        e4m3_t const *first, *second;
        bf16_t *first_decoded, *second_decoded;

        void next(__m512i &left, __m512i &right) noexcept {
            decode(first, second, left, right);
            _mm512_store_si512(first_decoded, left), _mm512_store_si512(second_decoded, right);
            first += 32, second += 32, first_decoded += 32, second_decoded += 32;
        }
    };

    template <size_t rows_, typename lines_type_>
    static void product_of(bf16_t const *activations, size_t activation_stride, lines_type_ lines, size_t pairs,
                           float *out, size_t out_stride) noexcept {
        __m512 sums[rows_][2];
        // Loops over rows are unrolled for good: GCC would keep a copy of the sums in memory otherwise.
#pragma GCC unroll 12
        for (size_t row = 0; row != rows_; ++row) sums[row][0] = sums[row][1] = _mm512_setzero_ps();
        // Three rows share a base register: base, base + stride and base + 2 * stride are all addressing modes.
        char const *bases[4];
        size_t const stride = activation_stride * sizeof(bf16_t);
        for (size_t base = 0; base != 4; ++base)
            bases[base] = reinterpret_cast<char const *>(activations) + (3 * base < rows_ ? 3 * base * stride : 0);
        for (size_t pair = 0; pair != pairs; ++pair) {
            __m512i left_line, right_line;
            lines.next(left_line, right_line);
            auto left = (__m512bh)left_line, right = (__m512bh)right_line;
#pragma GCC unroll 12
            for (size_t row = 0; row != rows_; ++row) {
                int both;
                __builtin_memcpy(&both, bases[row / 3] + row % 3 * stride, sizeof(both));
                auto activation = (__m512bh)_mm512_set1_epi32(both);
                sums[row][0] = _mm512_dpbf16_ps(sums[row][0], activation, left);
                sums[row][1] = _mm512_dpbf16_ps(sums[row][1], activation, right);
            }
            for (size_t base = 0; base != 4; ++base) bases[base] += sizeof(int);
        }
#pragma GCC unroll 12
        for (size_t row = 0; row != rows_; ++row) {
            _mm512_storeu_ps(out + row * out_stride, sums[row][0]);
            _mm512_storeu_ps(out + row * out_stride + 16, sums[row][1]);
        }
    }

    template <typename lines_type_>
    static void product_by(size_t rows, bf16_t const *activations, size_t activation_stride, lines_type_ lines,
                           size_t pairs, float *out, size_t out_stride) noexcept {
        using lines_t = lines_type_;
        using product_t = void (*)(bf16_t const *, size_t, lines_t, size_t, float *, size_t) noexcept;
        static constexpr product_t products[product_rows] = {
            product_of<1, lines_t>, product_of<2, lines_t>,  product_of<3, lines_t>,  product_of<4, lines_t>,
            product_of<5, lines_t>, product_of<6, lines_t>,  product_of<7, lines_t>,  product_of<8, lines_t>,
            product_of<9, lines_t>, product_of<10, lines_t>, product_of<11, lines_t>, product_of<12, lines_t>};
        products[rows - 1](activations, activation_stride, lines, pairs, out, out_stride);
    }

    static void product(size_t rows, bf16_t const *activations, size_t activation_stride, bf16_t const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        bf16_lines_t const lines {panels, panels + panel_stride};
        product_by(rows, activations, activation_stride, lines, pairs, out, out_stride);
    }

    static void decode_product(size_t rows, bf16_t const *activations, size_t activation_stride, e4m3_t const *codes,
                               bf16_t *decoded, size_t panel_stride, size_t pairs, float *out,
                               size_t out_stride) noexcept {
        e4m3_lines_t const lines {codes, codes + panel_stride, decoded, decoded + panel_stride};
        product_by(rows, activations, activation_stride, lines, pairs, out, out_stride);
    }
};

} // namespace
} // namespace uform
