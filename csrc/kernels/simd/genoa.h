/** GENOA: AVX512-BF16, BF16 activations. A file of this class includes it after all others, and `simd/end.h` last. */
#pragma once
#include <cstddef>
#include <cstdint>

#include "../packed.h"
#include "intrinsics.h"

#if !defined(UFORM_TARGET)
#define UFORM_TARGET "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16"
#endif
#include "begin.h"

#include "avx512.h"

namespace uform {
namespace {

/** Both bytes of the BF16 that a magnitude of E4M3 is. */
struct alignas(64) e4m3_bytes_t {
    uint8_t low[128] = {}, high[128] = {};

    constexpr e4m3_bytes_t() noexcept {
        // Magnitudes below 8 are subnormal: m * 2^-9. The others only need their exponent's bias raised by 120.
        constexpr uint16_t subnormals[8] = {0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60};
        for (unsigned magnitude = 0; magnitude != 128; ++magnitude) {
            unsigned const value = magnitude < 8 ? subnormals[magnitude] : (magnitude << 4) + 0x3c00;
            low[magnitude] = static_cast<uint8_t>(value), high[magnitude] = static_cast<uint8_t>(value >> 8);
        }
    }
};

constexpr e4m3_bytes_t e4m3_bytes_k;

struct genoa_t : avx512_t {
    using activation_t = bf16_t;
    static constexpr bool rounds_activations = true;

    static vector_t load_activations(bf16_t const *pointer) noexcept {
        __m512i wide = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<__m256i const *>(pointer)));
        return _mm512_castsi512_ps(_mm512_slli_epi32(wide, 16));
    }
    static void store_activations(bf16_t *pointer, vector_t value) noexcept {
        _mm256_storeu_si256(reinterpret_cast<__m256i *>(pointer), (__m256i)_mm512_cvtneps_pbh(value));
    }
    static void store_activations(bf16_t *pointer, vector_t value, size_t count) noexcept {
        _mm256_mask_storeu_epi16(pointer, mask(count), (__m256i)_mm512_cvtneps_pbh(value));
    }

    /** 32 codes and 32 others as BF16: two lookups in tables of bytes for all of them. */
    static void decode(e4m3_t const *first_codes, e4m3_t const *second_codes, __m512i &first,
                       __m512i &second) noexcept {
        // In the order that unpacking, which stays within quarters of a vector, undoes.
        __m512i const order = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11), sign = _mm512_set1_epi8(char(0x80));
        __m256i const left = _mm256_loadu_si256(reinterpret_cast<__m256i const *>(first_codes));
        __m256i const right = _mm256_loadu_si256(reinterpret_cast<__m256i const *>(second_codes));
        __m512i const codes =
            _mm512_permutex2var_epi64(_mm512_castsi256_si512(left), order, _mm512_castsi256_si512(right));
        // Lookups ignore the highest bit of a code, which is its sign.
        __m512i const low = _mm512_permutex2var_epi8(_mm512_load_si512(e4m3_bytes_k.low), codes,
                                                     _mm512_load_si512(e4m3_bytes_k.low + 64));
        __m512i const magnitudes = _mm512_permutex2var_epi8(_mm512_load_si512(e4m3_bytes_k.high), codes,
                                                            _mm512_load_si512(e4m3_bytes_k.high + 64));
        __m512i const high = _mm512_or_si512(magnitudes, _mm512_and_si512(codes, sign));
        first = _mm512_unpacklo_epi8(low, high);
        second = _mm512_unpackhi_epi8(low, high);
    }

    /** As `avx512_t::decode`, in half the time. */
    static void decode(e4m3_t const *codes, size_t count, bf16_t *out) noexcept {
        for (size_t index = 0; index != count; index += 64) {
            __m512i first, second;
            decode(codes + index, codes + index + 32, first, second);
            _mm512_store_si512(out + index, first);
            _mm512_store_si512(out + index + 32, second);
        }
    }
};

} // namespace
} // namespace uform
