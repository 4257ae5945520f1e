/** See resize_rows.h. Plain loops, which compilers turn into vectors of the instruction set at hand. */
#pragma once
#include "media/resize_rows.h"

namespace uform {
namespace {

void add(uint8_t const *row, size_t count, float weight, float *__restrict sums) noexcept {
    for (size_t index = 0; index != count; ++index) sums[index] += weight * float(row[index]);
}

void add_twice(uint8_t const *row, size_t count, float weight, float *__restrict sums, float other_weight,
               float *__restrict other_sums) noexcept {
    for (size_t index = 0; index != count; ++index) {
        float const level = float(row[index]);
        sums[index] += weight * level;
        other_sums[index] += other_weight * level;
    }
}

/** Three channels and, for the vector's sake, the next pixel's first. */
using pixel_t = float __attribute__((vector_size(4 * sizeof(float))));

void columns(float const *from, uint32_t const *firsts, float const *weights, size_t taps, size_t columns,
             float *to) noexcept {
    for (size_t column = 0; column != columns; ++column, to += 3) {
        float const *pixels = from + size_t(firsts[column]) * 3;
        pixel_t sum = {};
        for (size_t tap = 0; tap != taps; ++tap, ++weights, pixels += 3) {
            pixel_t pixel;
            __builtin_memcpy(&pixel, pixels, sizeof(pixel));
            sum += pixel * *weights;
        }
        __builtin_memcpy(to, &sum, 3 * sizeof(float));
    }
}

void round(float const *levels, size_t count, uint8_t *__restrict to) noexcept {
    for (size_t index = 0; index != count; ++index) to[index] = uint8_t(int(levels[index] + 0.5f));
}

} // namespace
} // namespace uform
