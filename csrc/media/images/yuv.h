/** Pictures that come as planes of brightness and colour, reduced before they become RGB: half as much work. */
#pragma once
#include "media/resize.h"

namespace uform {

/** Y, U and V of BT.601 in their limited range: colour has half as many columns and rows, rounded up. */
struct yuv_picture_t {
    picture_t size;
    uint8_t const *planes[3] = {};

    constexpr uint32_t columns(size_t plane) const noexcept {
        return plane ? size.width / 2 + size.width % 2 : size.width;
    }
    constexpr uint32_t rows(size_t plane) const noexcept {
        return plane ? size.height / 2 + size.height % 2 : size.height;
    }
    /** Of all planes. */
    constexpr uint64_t bytes() const noexcept {
        return uint64_t(columns(0)) * rows(0) + 2 * uint64_t(columns(1)) * rows(1);
    }
    /** Whether all planes are to be reduced. */
    constexpr bool covers(picture_t stored) const noexcept {
        return columns(1) >= stored.width && rows(1) >= stored.height && size.width / 2.0 >= stored.width &&
               size.height / 2.0 >= stored.height;
    }
};

/** Bytes of memory that `reduce_yuv` asks for. */
uint64_t reduce_yuv_bytes(yuv_picture_t const &picture, picture_t target, orientation_t orientation) noexcept;

/**
 *  Resizes to `target`, as viewed, into `rgb` [target.height, target.width, 3]. False without memory.
 *  @param[in] picture Which `covers` the target as it is stored.
 */
bool reduce_yuv(yuv_picture_t const &picture, picture_t target, orientation_t orientation, uint8_t *rgb) noexcept;

} // namespace uform
