/**
 *  The loops of resize.h, over rows of interleaved channels. All of it is integers: every version gives the same bits.
 *
 *  Levels of the source have 8 bits. Their weights over rows are fractions of 65,536, and each product is cut to 1/256
 *  of a level, as sums are kept; weights over columns are fractions of 16,384.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** Over rows: 1/256 of a level. */
constexpr unsigned sum_bits_k = 8;
/** Of a weight over columns. */
constexpr unsigned column_weight_bits_k = 14;
/** Of a level of a plane. */
constexpr unsigned plane_bits_k = 6;
/** Weights over columns come in groups, whose last ones may be zeros: of three channels, and of one. */
constexpr size_t column_taps_k = 4, plane_taps_k = 8;
/** What `columns` may read after the end of a row of sums, and write after the end of a row of levels. */
constexpr size_t sums_padding_k = 16, levels_padding_k = 1;

struct resize_rows_t {
    /** sums[i] += row[i] * weight / 256, cut */
    void (*add)(uint8_t const *row, size_t count, uint16_t weight, uint16_t *sums) noexcept;
    /** The same for two rows of sums at once. */
    void (*add_twice)(uint8_t const *row, size_t count, uint16_t weight, uint16_t *sums, uint16_t other_weight,
                      uint16_t *other_sums) noexcept;
    /**
     *  Each pixel of `to` [columns, 3] is the sum of `taps` pixels of `from`, the first of which is `firsts[column]`,
     *  times `weights` [columns, taps]: rounded, halves up. Weights are not negative, and have a sum of 1.
     *  @param[in] from At most 65,280 and a bit: see above.
     *  @param[in] taps A multiple of `column_taps_k`.
     */
    void (*columns)(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps, size_t columns,
                    uint8_t *to) noexcept;
    /**
     *  The same for one channel: `to` [columns] are in 1 / 2^`plane_bits_k` of a level.
     *  @param[in] taps A multiple of `plane_taps_k`.
     */
    void (*plane_columns)(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps,
                          size_t columns, int16_t *to) noexcept;
};

extern resize_rows_t const resize_rows_serial;
#if defined(__x86_64__)
extern resize_rows_t const resize_rows_haswell; /**< AVX2 */
#endif

} // namespace uform
