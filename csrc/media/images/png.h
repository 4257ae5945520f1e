/**
 *  PNG: all types and depths, interlaced too, and animations. See codecs.h.
 *
 *  An animation is its first frame, on its canvas: a still picture that is not part of it is not shown. Checks of
 *  chunks and of compressed data have to fit, and the file has to have its end. The compressed data is inflated at once
 *  (libdeflate, whose speed comes from that), with memory for as many bytes as the picture has; its rows are then
 *  unfiltered, converted and resized one by one.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_png(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept;
uform_status_t decode_png(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept;

} // namespace uform
