/**
 *  Vectors of 16 F32 in AVX-512, the base of SKYLAKE, GENOA and SAPPHIRE. Included by their headers, behind the
 *  pragma that names the target. What stands here has internal linkage on purpose: the linker must never hand a copy
 *  made for a newer class to an older machine.
 */
#pragma once
#include <cstddef>

#include "../packed.h"
#include "intrinsics.h"

namespace uform {
namespace {

struct avx512_t {
    using vector_t = __m512;
    static constexpr size_t lanes = 16;

    static __mmask16 mask(size_t count) noexcept { return static_cast<__mmask16>((1u << count) - 1u); }
    static vector_t zero() noexcept { return _mm512_setzero_ps(); }
    static vector_t fill(float value) noexcept { return _mm512_set1_ps(value); }
    static vector_t load(float const *pointer) noexcept { return _mm512_loadu_ps(pointer); }
    /** The first `count` < 16 lanes, the others zero. */
    static vector_t load(float const *pointer, size_t count) noexcept {
        return _mm512_maskz_loadu_ps(mask(count), pointer);
    }
    static void store(float *pointer, vector_t value) noexcept { _mm512_storeu_ps(pointer, value); }
    static void store(float *pointer, vector_t value, size_t count) noexcept {
        _mm512_mask_storeu_ps(pointer, mask(count), value);
    }
    static vector_t add(vector_t a, vector_t b) noexcept { return _mm512_add_ps(a, b); }
    static vector_t subtract(vector_t a, vector_t b) noexcept { return _mm512_sub_ps(a, b); }
    static vector_t multiply(vector_t a, vector_t b) noexcept { return _mm512_mul_ps(a, b); }
    static vector_t divide(vector_t a, vector_t b) noexcept { return _mm512_div_ps(a, b); }
    static vector_t maximum(vector_t a, vector_t b) noexcept { return _mm512_max_ps(a, b); }
    static vector_t minimum(vector_t a, vector_t b) noexcept { return _mm512_min_ps(a, b); }
    /** a * b + c, rounded once. */
    static vector_t multiply_add(vector_t a, vector_t b, vector_t c) noexcept { return _mm512_fmadd_ps(a, b, c); }
    /** a minus the integer below it. */
    static vector_t fraction(vector_t a) noexcept { return _mm512_reduce_ps(a, _MM_FROUND_TO_NEG_INF); }
    /** a times two to the integer below `exponent`, 0 where that is too small for a number. */
    static vector_t scale(vector_t a, vector_t exponent) noexcept { return _mm512_scalef_ps(a, exponent); }
    static float sum(vector_t a) noexcept { return _mm512_reduce_add_ps(a); }
    static float largest(vector_t a) noexcept { return _mm512_reduce_max_ps(a); }

    /** E4M3 codes, none of them NaN, as BF16, exactly; `count` is a multiple of 64, `out` aligned to 64 bytes. */
    static void decode(e4m3_t const *codes, size_t count, bf16_t *out) noexcept {
        // Magnitudes below 8 are subnormal: m * 2^-9. The others only need their exponent's bias raised by 120.
        __m512i const subnormals =
            _mm512_broadcast_i32x4(_mm_setr_epi16(0x0000, 0x3b00, 0x3b80, 0x3bc0, 0x3c00, 0x3c20, 0x3c40, 0x3c60));
        for (size_t index = 0; index != count; index += 32) {
            auto source = reinterpret_cast<__m256i const *>(codes + index);
            __m512i code = _mm512_cvtepu8_epi16(_mm256_loadu_si256(source));
            __m512i magnitude = _mm512_and_si512(code, _mm512_set1_epi16(0x7f));
            __m512i value = _mm512_add_epi16(_mm512_slli_epi16(magnitude, 4), _mm512_set1_epi16(0x3c00));
            __mmask32 is_subnormal = _mm512_cmplt_epu16_mask(magnitude, _mm512_set1_epi16(8));
            value = _mm512_mask_permutexvar_epi16(value, is_subnormal, magnitude, subnormals);
            __m512i sign = _mm512_and_si512(_mm512_slli_epi16(code, 8), _mm512_set1_epi16(short(0x8000)));
            _mm512_store_si512(out + index, _mm512_or_si512(value, sign));
        }
    }
};

} // namespace
} // namespace uform
