/**
 *  The intrinsics of AVX512-BF16 and AMX in terms of older ones, included before everything else by `VARIANT=software`:
 *  kernels of GENOA and SAPPHIRE then run, slowly, wherever there is AVX-512 with VBMI, VNNI and VPOPCNTDQ. For GCC.
 *
 *  Sums are rounded at other steps than the processor's, within the tolerances of the kernels' headers; subnormal
 *  numbers, which the processor takes for zeros, stay.
 */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/scalars.h"
#include "kernels/simd/intrinsics.h"

#define UFORM_SOFTWARE_INTRINSICS

#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512vl")

/** F32 in BF16, to nearest even, in the lower halves of 32-bit lanes. */
inline __m512i software_round(__m512 value) {
    __m512i const bits = _mm512_castps_si512(value);
    __m512i const lowest = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    return _mm512_srli_epi32(_mm512_add_epi32(bits, _mm512_add_epi32(lowest, _mm512_set1_epi32(0x7fff))), 16);
}
inline __m256i software_cvtneps_pbh(__m512 value) { return _mm512_cvtepi32_epi16(software_round(value)); }
inline __m512i software_cvtne2ps_pbh(__m512 upper, __m512 lower) {
    __m512i const low = _mm512_castsi256_si512(software_cvtneps_pbh(lower));
    return _mm512_inserti64x4(low, software_cvtneps_pbh(upper), 1);
}
inline __m512 software_dpbf16_ps(__m512 sum, __m512i a, __m512i b) {
    __m512i const odd = _mm512_set1_epi32(static_cast<int>(0xffff0000u));
    sum = _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_and_si512(a, odd)), _mm512_castsi512_ps(_mm512_and_si512(b, odd)),
                          sum);
    return _mm512_fmadd_ps(_mm512_castsi512_ps(_mm512_slli_epi32(a, 16)), _mm512_castsi512_ps(_mm512_slli_epi32(b, 16)),
                           sum);
}

#pragma GCC pop_options

/** The eight tiles of a thread, all of 16 rows of 64 bytes, as the kernels configure them. */
inline thread_local std::byte software_tiles[8][16][64];

inline void software_tile_loadd(int tile, void const *base, size_t stride) {
    for (size_t row = 0; row != 16; ++row)
        std::memcpy(software_tiles[tile][row], static_cast<char const *>(base) + row * stride, 64);
}
inline void software_tile_stored(int tile, void *base, size_t stride) {
    for (size_t row = 0; row != 16; ++row)
        std::memcpy(static_cast<char *>(base) + row * stride, software_tiles[tile][row], 64);
}
/** sums[m][n] += a[m][2k] * b[k][2n] + a[m][2k + 1] * b[k][2n + 1] */
inline void software_tile_dpbf16ps(int sums, int a, int b) {
    for (size_t m = 0; m != 16; ++m)
        for (size_t n = 0; n != 16; ++n) {
            float sum;
            std::memcpy(&sum, software_tiles[sums][m] + 4 * n, sizeof(sum));
            for (size_t k = 0; k != 16; ++k) {
                uint16_t left[2], right[2];
                std::memcpy(left, software_tiles[a][m] + 4 * k, sizeof(left));
                std::memcpy(right, software_tiles[b][k] + 4 * n, sizeof(right));
                for (size_t half = 0; half != 2; ++half)
                    sum += uform::bf16_to_f32(left[half]) * uform::bf16_to_f32(right[half]);
            }
            std::memcpy(software_tiles[sums][m] + 4 * n, &sum, sizeof(sum));
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbf16ps
#define _mm512_cvtneps_pbh(value) software_cvtneps_pbh(value)
#define _mm512_cvtne2ps_pbh(upper, lower) software_cvtne2ps_pbh(upper, lower)
#define _mm512_dpbf16_ps(sum, a, b) software_dpbf16_ps(sum, (__m512i)(a), (__m512i)(b))
#define _tile_loadconfig(configuration) static_cast<void>(configuration)
#define _tile_release() static_cast<void>(0)
#define _tile_zero(tile) std::memset(software_tiles[tile], 0, sizeof(software_tiles[tile]))
#define _tile_loadd(tile, base, stride) software_tile_loadd(tile, base, stride)
#define _tile_stored(tile, base, stride) software_tile_stored(tile, base, stride)
#define _tile_dpbf16ps(sums, a, b) software_tile_dpbf16ps(sums, a, b)
