/**
 *  JPEG: baseline and progressive, of 8 bits, grey, colour, CMYK and YCCK. See codecs.h.
 *
 *  It is decoded at the smallest scale of 1/8, 1/4, 1/2 and 1 that covers the size that is wanted, and resized from
 *  there. Four colours are those of Adobe's programs, inverted, and are mixed without a profile; embedded profiles are
 *  not applied. Data that ends early or makes no sense is MALFORMED, even where libjpeg could guess the rest.
 *  Arithmetic coding, 12 bits and lossless modes, which no viewer shows, are UNSUPPORTED_LAYOUT.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_jpeg(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept;
uform_status_t decode_jpeg(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept;

} // namespace uform
