/**
 *  WebP: lossy and lossless, with alpha, and animations. See codecs.h.
 *  An animation is its first frame, on a white canvas; the background that its file names is not painted, as in
 *  browsers. A lossy picture without alpha that shrinks to half or less is resized before it becomes RGB.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_webp(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept;
uform_status_t decode_webp(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept;

} // namespace uform
