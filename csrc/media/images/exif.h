/** The one thing that EXIF says about how a picture is viewed. */
#pragma once
#include <cstddef>
#include <cstdint>

#include "media/resize.h"

namespace uform {

/**
 *  The orientation in EXIF metadata: a TIFF structure of either byte order, with or without "Exif\0\0" before it.
 *  Upright where there is none, or where it is broken: that is no reason not to show a picture.
 */
orientation_t exif_orientation(uint8_t const *data, size_t length) noexcept;

} // namespace uform
