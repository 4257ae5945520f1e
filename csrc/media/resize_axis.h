/** The filter of resize.h in one direction, and sums over rows by it. */
#pragma once
#include <cstddef>
#include <cstdint>

#include "media/resize_rows.h"

namespace uform {

/** One direction. */
struct resize_axis_t {
    uint32_t source = 1, target = 1; /**< Pixels. */
    double scale = 1;                /**< Pixels of the source for one of the target. */
    double support = 1;              /**< Half the filter's width, in pixels of the source. */

    resize_axis_t() noexcept = default;
    /** `extent` of the source's pixels, from the first on, are stretched or squeezed to the target's. */
    resize_axis_t(uint32_t source, double extent, uint32_t target) noexcept;
    /** The most pixels that the filter sees at once. */
    size_t pixels() const noexcept;
};

/** The pixels of the source that make one of the target: from `first` up to `last`. */
struct resize_span_t {
    uint32_t first = 0, last = 0;
    double center = 0;
    double norm = 1;  /**< One over the sum of the triangle's weights. */
    double carry = 0; /**< What rounding has left of the weights so far. */

    resize_span_t() noexcept = default;
    resize_span_t(resize_axis_t const &axis, uint32_t pixel) noexcept;
    uint32_t pixels() const noexcept { return last - first; }
    bool covers(uint32_t pixel) const noexcept { return pixel >= first && pixel < last; }
    double weight(resize_axis_t const &axis, uint32_t pixel) const noexcept;
    /** The same in parts of `one`: weights of all pixels, in turn, have this sum. */
    uint32_t next_weight(resize_axis_t const &axis, uint32_t pixel, double one) noexcept;
};

/** The loops of the fastest CPU class that there is. */
resize_rows_t const &resize_loops() noexcept;

/** The pixels that make each column, and their weights. The memory is the caller's. */
class resize_columns_t {
  public:
    /** @param[in] group Of how many taps the loop takes a multiple. */
    static size_t taps(resize_axis_t const &axis, size_t group) noexcept;
    static uint64_t bytes(resize_axis_t const &axis, size_t group) noexcept;
    /** @param[in] memory [bytes] zeros, aligned to 4 bytes. */
    void open(resize_axis_t const &axis, size_t group, uint8_t *memory) noexcept;

    /** See resize_rows.h. */
    void resize(uint16_t const *from, uint8_t *to) const noexcept;
    void resize_plane(uint16_t const *from, int16_t *to) const noexcept;

  private:
    size_t taps_ = 0, columns_ = 0;
    uint32_t *firsts_ = nullptr; /**< [columns] */
    int16_t *weights_ = nullptr; /**< [columns, taps] */
};

/**
 *  Sums of rows: those of a source that is reduced, of any number of channels. The memory is the caller's.
 *  Each row is added to at most two rows of the target.
 */
class resize_sums_t {
  public:
    /** @param[in] samples In a row. */
    static uint64_t bytes(size_t samples) noexcept;
    /** @param[in] memory [bytes] zeros, aligned to 4 bytes. */
    void open(resize_axis_t const &axis, size_t samples, uint8_t *memory) noexcept;

    /** Takes the next row of the source. */
    void take(uint8_t const *row) noexcept;
    /** The next row of the target, in 1/256 of a level: null if more of the source is needed. */
    uint16_t const *finished() noexcept;
    /** Goes on to the row after it. */
    void next() noexcept;

  private:
    /** Whether sums of 16 bits would add up too much of what is cut. */
    bool is_wide() const noexcept { return axis_.pixels() > 64; }
    void start(uint32_t row) noexcept;
    void add(uint8_t const *row) noexcept;
    void add_wide(uint8_t const *row) noexcept;

    resize_axis_t axis_;
    size_t samples_ = 0;
    uint32_t taken_ = 0;        /**< Rows of the source. */
    uint32_t row_ = 0;          /**< Of the target, that is finished next. */
    resize_span_t spans_[2];    /**< Of this one and the one after it: of row `r` at `r % 2`. */
    uint32_t *wide_sums_[2] {}; /**< [samples] in 1 / 2^24 of a level; if wide. */
    uint16_t *sums_[2] {};      /**< [samples] in 1/256 of a level. */
};

} // namespace uform
