#include "choose.h"

#include <cmath>

namespace uform {

void choose(float const *logits, float inverse_temperature, uint8_t const *choices, size_t count,
            float *probabilities) noexcept {
    double const factor = inverse_temperature;
    double largest = -INFINITY, total = 0;
    for (size_t i = 0; i != count; ++i) largest = std::fmax(largest, logits[choices[i]] * factor);
    for (size_t i = 0; i != count; ++i) total += std::exp(logits[choices[i]] * factor - largest);
    for (size_t i = 0; i != count; ++i)
        probabilities[i] = static_cast<float>(std::exp(logits[choices[i]] * factor - largest) / total);
}

} // namespace uform
