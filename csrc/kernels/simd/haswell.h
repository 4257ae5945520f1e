/** HASWELL: AVX2 and FMA, F32 activations. A file of this class includes it after all others, and `simd/end.h` last. */
#pragma once
#include <cstddef>

#include "../packed.h"
#include "intrinsics.h"

#if !defined(UFORM_TARGET)
#define UFORM_TARGET "avx2,fma,f16c"
#endif
#include "begin.h"

namespace uform {
namespace {

struct haswell_t {
    using vector_t = __m256;
    using activation_t = float;
    static constexpr bool rounds_activations = false;
    static constexpr size_t lanes = 8;

    static __m256i mask(size_t count) noexcept {
        return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                                  _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    }
    static vector_t zero() noexcept { return _mm256_setzero_ps(); }
    static vector_t fill(float value) noexcept { return _mm256_set1_ps(value); }
    static vector_t load(float const *pointer) noexcept { return _mm256_loadu_ps(pointer); }
    static vector_t load(float const *pointer, size_t count) noexcept {
        return _mm256_maskload_ps(pointer, mask(count));
    }
    static void store(float *pointer, vector_t value) noexcept { _mm256_storeu_ps(pointer, value); }
    static void store(float *pointer, vector_t value, size_t count) noexcept {
        _mm256_maskstore_ps(pointer, mask(count), value);
    }
    static vector_t add(vector_t a, vector_t b) noexcept { return _mm256_add_ps(a, b); }
    static vector_t subtract(vector_t a, vector_t b) noexcept { return _mm256_sub_ps(a, b); }
    static vector_t multiply(vector_t a, vector_t b) noexcept { return _mm256_mul_ps(a, b); }
    static vector_t divide(vector_t a, vector_t b) noexcept { return _mm256_div_ps(a, b); }
    static vector_t maximum(vector_t a, vector_t b) noexcept { return _mm256_max_ps(a, b); }
    static vector_t minimum(vector_t a, vector_t b) noexcept { return _mm256_min_ps(a, b); }
    static vector_t multiply_add(vector_t a, vector_t b, vector_t c) noexcept { return _mm256_fmadd_ps(a, b, c); }
    static vector_t fraction(vector_t a) noexcept { return _mm256_sub_ps(a, _mm256_floor_ps(a)); }
    /** In two steps, so that each factor's exponent exists. */
    static vector_t scale(vector_t a, vector_t exponent) noexcept {
        __m256i whole = _mm256_cvtps_epi32(_mm256_floor_ps(_mm256_max_ps(exponent, _mm256_set1_ps(-252.f))));
        __m256i half = _mm256_srai_epi32(whole, 1);
        __m256i rest = _mm256_sub_epi32(whole, half);
        __m256i bias = _mm256_set1_epi32(127);
        __m256 first = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(half, bias), 23));
        __m256 second = _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(rest, bias), 23));
        return _mm256_mul_ps(_mm256_mul_ps(a, first), second);
    }
    static float sum(vector_t a) noexcept {
        __m128 four = _mm_add_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
    }
    static float largest(vector_t a) noexcept {
        __m128 four = _mm_max_ps(_mm256_castps256_ps128(a), _mm256_extractf128_ps(a, 1));
        __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
        return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
    }
    static vector_t load_activations(float const *pointer) noexcept { return load(pointer); }
    static void store_activations(float *pointer, vector_t value) noexcept { store(pointer, value); }
    static void store_activations(float *pointer, vector_t value, size_t count) noexcept {
        store(pointer, value, count);
    }
};

} // namespace
} // namespace uform
