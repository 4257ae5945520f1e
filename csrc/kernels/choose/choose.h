/**
 *  A text's choices: the softmax, over its legal bytes alone, of logits times an inverse temperature.
 *  Work is negligible: one version, in F64, rounded once to F32. Tolerance: 1e-7.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** `logits` [256], `choices` and `probabilities` [count]. */
void choose(float const *logits, float inverse_temperature, uint8_t const *choices, size_t count,
            float *probabilities) noexcept;

} // namespace uform
