/**
 *  What stands between a block's fused query, key and value product and attention: RMSNorm of each query and key head,
 *  rotary positions (RoFormer, Su et al., 2021) over the pairs (j, j + head_dimension / 2), a factor, and the rounding
 *  to activations.
 *
 *      a = x[j] * gain[j] * r,   b = x[j + half] * gain[j + half] * r,   r = factor / sqrt(mean(x^2) + epsilon)
 *      out[j] = a * cos - b * sin,   out[j + half] = b * cos + a * sin
 *
 *  Relative tolerance: 2e-6 of the head's norm, and the rounding of BF16 activations.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

struct rope_t {
    float const *heads = nullptr; /**< [count, head_dimension] without gaps: one head of neighbouring tokens. */
    size_t count = 0;
    size_t head_dimension = 0;           /**< 32 or 64. */
    float const *gain = nullptr;         /**< [head_dimension]; nullptr: values, which are only rounded. */
    float const *rotary = nullptr;       /**< [positions, 2, head_dimension / 2]: cosines, then sines. */
    uint32_t const *positions = nullptr; /**< [count]: row of `rotary` of each token. */
    float epsilon = 0;
    float factor = 1;
    void *activations = nullptr;  /**< First token's head. */
    size_t activation_stride = 0; /**< Elements from token to token. */
};

void rope_serial(rope_t const &arguments) noexcept;
void rope_haswell(rope_t const &arguments) noexcept;
void rope_skylake(rope_t const &arguments) noexcept;
void rope_genoa(rope_t const &arguments) noexcept;

} // namespace uform
