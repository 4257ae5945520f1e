/** What shows of a transparent picture on a white page. */
#pragma once
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace uform {

/** A level of 8 bits, rounded to nearest. */
constexpr uint8_t over_white(uint32_t level, uint32_t alpha) noexcept {
    uint32_t const product = (255 - level) * alpha + 128;
    return uint8_t(255 - ((product + (product >> 8)) >> 8));
}

/** A row: [columns, 4], alpha last and not multiplied with the levels, to [columns, 3]. */
inline void over_white(uint8_t const *rgba, size_t columns, uint8_t *rgb) noexcept {
    using bytes_t = uint8_t __attribute__((vector_size(8)));
    using words_t = uint16_t __attribute__((vector_size(16)));
    // Two pixels at once; each is written with a byte that the next one writes again.
    for (; columns > 2; columns -= 2, rgba += 8, rgb += 6) {
        bytes_t two;
        std::memcpy(&two, rgba, sizeof(two));
        words_t const samples = __builtin_convertvector(two, words_t);
        words_t const alphas = __builtin_shufflevector(samples, samples, 3, 3, 3, 3, 7, 7, 7, 7);
        words_t const products = (255 - samples) * alphas + 128;
        words_t const levels = 255 - ((products + (products >> 8)) >> 8);
        bytes_t const narrow = __builtin_convertvector(levels, bytes_t);
        uint8_t pixels[sizeof(narrow)];
        std::memcpy(pixels, &narrow, sizeof(pixels));
        std::memcpy(rgb, pixels, 4);
        std::memcpy(rgb + 3, pixels + 4, 4);
    }
    for (; columns; --columns, rgba += 4, rgb += 3)
        for (size_t channel = 0; channel != 3; ++channel) rgb[channel] = over_white(rgba[channel], rgba[3]);
}

} // namespace uform
