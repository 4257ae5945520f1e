/** What shows of a transparent picture on a white page. */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** A level of 8 bits, rounded to nearest. */
constexpr uint8_t over_white(uint32_t level, uint32_t alpha) noexcept {
    uint32_t const product = (255 - level) * alpha + 128;
    return uint8_t(255 - ((product + (product >> 8)) >> 8));
}

/** A row: [columns, 4], alpha last and not multiplied with the levels, to [columns, 3]. */
inline void over_white(uint8_t const *rgba, size_t columns, uint8_t *rgb) noexcept {
    for (size_t column = 0; column != columns; ++column, rgba += 4, rgb += 3)
        for (size_t channel = 0; channel != 3; ++channel) rgb[channel] = over_white(rgba[channel], rgba[3]);
}

} // namespace uform
