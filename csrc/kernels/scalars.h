/**
 *  Conversions between F32 and the narrow scalars, one number at a time. Internal linkage: see simd/avx512.h.
 *  Formats: BF16 is the upper half of a binary32; E4M3 is the OCP 8-bit format (2023), bias 7, no infinities, 0x7f NaN.
 */
#pragma once
#include <cstdint>

#include "packed.h"

namespace uform {
namespace {

inline float bits_to_f32(uint32_t bits) noexcept {
    float value;
    __builtin_memcpy(&value, &bits, sizeof(value));
    return value;
}

inline uint32_t f32_to_bits(float value) noexcept {
    uint32_t bits;
    __builtin_memcpy(&bits, &value, sizeof(bits));
    return bits;
}

inline float bf16_to_f32(bf16_t value) noexcept { return bits_to_f32(static_cast<uint32_t>(value) << 16); }

/** To nearest, ties to even; a NaN stays one, and is quiet. */
inline bf16_t f32_to_bf16(float value) noexcept {
    uint32_t const bits = f32_to_bits(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return static_cast<bf16_t>(bits >> 16 | 0x40u);
    return static_cast<bf16_t>((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

inline float e4m3_to_f32(e4m3_t code) noexcept {
    uint32_t const sign = static_cast<uint32_t>(code & 0x80u) << 24, magnitude = code & 0x7fu;
    if (magnitude == 0x7fu) return bits_to_f32(sign | 0x7fc00000u);
    // Subnormal codes are multiples of 2^-9.
    if (magnitude < 8) return bits_to_f32(f32_to_bits(static_cast<float>(magnitude) * 0x1p-9f) | sign);
    return bits_to_f32(sign | ((magnitude << 20) + (120u << 23)));
}

/** To nearest, ties to even; beyond 448 it saturates. A NaN becomes NaN. */
inline e4m3_t f32_to_e4m3(float value) noexcept {
    uint32_t const bits = f32_to_bits(value), sign = bits >> 24 & 0x80u, magnitude = bits & 0x7fffffffu;
    if (magnitude > 0x7f800000u) return static_cast<e4m3_t>(sign | 0x7fu);
    if (magnitude >= f32_to_bits(448.f)) return static_cast<e4m3_t>(sign | 0x7eu);
    if (magnitude < f32_to_bits(0x1p-6f)) {
        // A number whose last place is 2^-9 takes the rounding over; its lowest bits are the code.
        float const anchored = bits_to_f32(magnitude) + 0x1p14f;
        return static_cast<e4m3_t>(sign | (f32_to_bits(anchored) - f32_to_bits(0x1p14f)));
    }
    uint32_t const rounded = magnitude + 0x7ffffu + (magnitude >> 20 & 1u);
    return static_cast<e4m3_t>(sign | ((rounded >> 20) - (120u << 3)));
}

} // namespace
} // namespace uform
