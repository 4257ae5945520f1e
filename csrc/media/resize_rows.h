/**
 *  The loops of resize.h, over rows of interleaved channels in F32. Elements of a sum are added in one order, nothing
 * is fused: all versions give the same bits. Rows of floats have three channels a pixel, and one float more at the end.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

struct resize_rows_t {
    /** sums[i] += weight * row[i] */
    void (*add)(uint8_t const *row, size_t count, float weight, float *sums) noexcept;
    /** The same for two rows of sums at once. */
    void (*add_twice)(uint8_t const *row, size_t count, float weight, float *sums, float other_weight,
                      float *other_sums) noexcept;
    /**
     *  Each pixel of `to` [columns, 3] is the sum of `taps` pixels of `from`, the first of which is `firsts[column]`,
     *  times `weights` [columns, taps].
     */
    void (*columns)(float const *from, uint32_t const *firsts, float const *weights, size_t taps, size_t columns,
                    float *to) noexcept;
    /** Levels from 0 to 255, rounded; halves up. */
    void (*round)(float const *levels, size_t count, uint8_t *to) noexcept;
};

extern resize_rows_t const resize_rows_serial;
#if defined(__x86_64__)
extern resize_rows_t const resize_rows_haswell; /**< AVX2 */
#endif

} // namespace uform
