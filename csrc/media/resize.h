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
#include "media/resize_axis.h"

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

/** Where the rows of a stored picture go in the picture that is viewed. */
class oriented_rows_t {
  public:
    oriented_rows_t() noexcept = default;
    /** @param[in] target Size as viewed. @param[out] rgb [target.height, target.width, 3] */
    oriented_rows_t(picture_t target, orientation_t orientation, uint8_t *rgb) noexcept;

    /** Writes the next row, as stored: as many pixels as a stored row of the target has. */
    void write(uint8_t const *row) noexcept;

  private:
    size_t columns_ = 0;
    uint8_t *place_ = nullptr;   /**< Where the row's first pixel goes. */
    ptrdiff_t across_bytes_ = 0; /**< From a pixel to the next of its row. */
    ptrdiff_t down_bytes_ = 0;   /**< From a row to the next. */
};

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
    bool reduces() const noexcept { return down_.scale >= 1; }
    void reduce(uint8_t const *row) noexcept;
    void enlarge(uint8_t const *row) noexcept;

    resize_axis_t down_;
    size_t row_samples_ = 0;
    size_t line_samples_ = 0;
    bool copies_ = false;  /**< Source and target have one size. */
    uint32_t taken_ = 0;   /**< Rows of the source. */
    uint32_t written_ = 0; /**< Rows of the target, in the source's order. */

    uint8_t *memory_ = nullptr;
    resize_columns_t columns_;
    resize_sums_t sums_;         /**< If reduced. */
    uint16_t *row_ = nullptr;    /**< A row of the source, in 1/256 of a level; if enlarged. */
    uint8_t *lines_[2] = {};     /**< Resized rows: two when enlarging. */
    uint8_t *between_ = nullptr; /**< A row between two of these. */
    oriented_rows_t output_;
};

} // namespace uform
