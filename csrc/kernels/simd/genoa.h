/** GENOA: AVX512-BF16, BF16 activations. A file of this class includes it after all others, and `simd/end.h` last. */
#pragma once
#include <cstddef>

#include "../packed.h"
#include "intrinsics.h"

#if !defined(UFORM_TARGET)
#define UFORM_TARGET "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16"
#endif
#include "begin.h"

#include "avx512.h"

namespace uform {
namespace {

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
};

} // namespace
} // namespace uform
