/**
 *  Resizing of pictures that come row by row, with antialiasing: the filter is a triangle as wide as two pixels of the
 *  target or two of the source, whichever is wider, normalized within the picture. That is Pillow's BILINEAR, without
 *  its rounding between the two directions where pictures are reduced: within a level of it.
 *
 *  Memory: some 30 bytes for each pixel of a source row and 9 for each of a target row, and the weights of its filter.
 *  Work: each row is added to at most two rows of the target, and only these are resized horizontally, unless the
 *  picture is enlarged vertically. All of it is integers: every CPU class gives the same bits.
 */
#pragma once
#include <cstddef>
#include <cstdint>

#include "media/codecs.h"
#include "media/resize_rows.h"

namespace uform {

/** How a picture was stored, as EXIF numbers it: where the viewer sees its first row and its first column. */
enum class orientation_t : uint8_t {
    upright_k = 1,      /**< top, left */
    mirrored_k = 2,     /**< top, right */
    upside_down_k = 3,  /**< bottom, right */
    flipped_k = 4,      /**< bottom, left */
    transposed_k = 5,   /**< left, top */
    turned_left_k = 6,  /**< right, top: a viewer turns it clockwise */
    transversed_k = 7,  /**< right, bottom */
    turned_right_k = 8, /**< left, bottom */
};

/** The size of a stored picture as it is viewed, or of a viewed one as it is stored. */
constexpr picture_t turned(picture_t picture, orientation_t orientation) noexcept {
    bool const swaps = orientation >= orientation_t::transposed_k;
    return swaps ? picture_t {picture.height, picture.width} : picture;
}

/** Turns the rows of a stored picture into the picture that is viewed. One picture an object, one thread at a time. */
class resizer_t {
  public:
    resizer_t() noexcept = default;
    resizer_t(resizer_t const &) = delete;
    resizer_t &operator=(resizer_t const &) = delete;
    ~resizer_t() noexcept;

    /** Bytes of memory that `open` asks for. */
    static uint64_t bytes(picture_t source, picture_t target, orientation_t orientation) noexcept;

    /**
     *  Gets ready for the first row. False without memory.
     *  @param[in] source Columns and rows that will come, as stored; neither is 0.
     *  @param[in] target Size as viewed; neither side is 0.
     *  @param[out] rgb [target.height, target.width, 3], complete once the last row was taken.
     */
    bool open(picture_t source, picture_t target, orientation_t orientation, uint8_t *rgb) noexcept;

    /** As above, of a picture that ends within its last column and row: it is `width` by `height` pixels large. */
    bool open(picture_t source, double width, double height, picture_t target, orientation_t orientation,
              uint8_t *rgb) noexcept;

    /** Takes the next row: [source.width, 3]. */
    void take(uint8_t const *row) noexcept;

  private:
    /** One direction. */
    struct axis_t {
        uint32_t source = 1, target = 1; /**< Pixels. */
        double scale = 1;                /**< Pixels of the source for one of the target. */
        double support = 1;              /**< Half the filter's width, in pixels of the source. */
    };

    /** The pixels of the source that make one of the target: from `first` up to `last`. */
    struct span_t {
        uint32_t first = 0, last = 0;
        double center = 0;
        double norm = 1;  /**< One over the sum of the triangle's weights. */
        double carry = 0; /**< What rounding has left of the weights so far. */

        span_t() noexcept = default;
        span_t(axis_t const &axis, uint32_t pixel) noexcept;
        uint32_t pixels() const noexcept { return last - first; }
        bool covers(uint32_t pixel) const noexcept { return pixel >= first && pixel < last; }
        double weight(axis_t const &axis, uint32_t pixel) const noexcept;
        /** The same in parts of `one`: weights of all pixels, in turn, have this sum. */
        uint32_t next_weight(axis_t const &axis, uint32_t pixel, double one) noexcept;
    };

    static size_t pixels_of_filter(axis_t const &axis) noexcept;
    static size_t taps(axis_t const &across) noexcept;
    bool reduces() const noexcept { return down_.scale >= 1; }
    /** Whether sums of 16 bits would add up too much of what is cut. */
    bool is_wide() const noexcept { return pixels_of_filter(down_) > 64; }
    void aim(uint8_t *rgb, picture_t target, orientation_t orientation) noexcept;
    void list_columns() noexcept;
    void start_span(uint32_t row) noexcept;
    void reduce(uint8_t const *row) noexcept;
    void add(uint8_t const *row) noexcept;
    void add_wide(uint8_t const *row) noexcept;
    void enlarge(uint8_t const *row) noexcept;
    void resize_columns(uint16_t const *from, uint8_t *to) const noexcept;
    void write(uint8_t const *line) noexcept;

    resize_rows_t const *loops_ = nullptr;
    axis_t across_, down_;
    bool copies_ = false;  /**< Source and target have one size. */
    uint32_t taken_ = 0;   /**< Rows of the source. */
    uint32_t written_ = 0; /**< Rows of the target, in the source's order. */

    /** The row of the target that is written next, and the one after it: row `r` at `r % 2`. */
    span_t spans_[2];
    uint8_t *memory_ = nullptr;
    uint32_t *firsts_ = nullptr;  /**< [target columns] the first pixel that is weighted. */
    uint32_t *wide_sums_[2] = {}; /**< Of the spans, [source columns, 3], in 1 / 2^24 of a level; if wide. */
    uint16_t *sums_[2] = {};      /**< The same, in 1/256 of a level. */
    int16_t *weights_ = nullptr;  /**< [target columns, taps] */
    uint8_t *lines_[2] = {};      /**< Resized rows, [target columns, 3]. */
    uint8_t *between_ = nullptr;  /**< A row between two of these. */

    uint8_t *output_ = nullptr;  /**< Where the source's first pixel goes. */
    ptrdiff_t across_bytes_ = 0; /**< From a pixel to the next of its row in the source. */
    ptrdiff_t down_bytes_ = 0;   /**< From a row of the source to the next. */
};

} // namespace uform
