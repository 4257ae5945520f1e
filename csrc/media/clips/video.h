/**
 *  Videos: the frames on show at even intervals, upright, as RGB of the size that is wanted. See codecs.h.
 *
 *  Times are the container's, with its edits applied, and start with the first frame that it shows. Frames that no
 * other one refers to are decoded only when they are picked. A frame that is damaged makes the video MALFORMED. Samples
 * are taken as they are coded: the curves of HDR are not mapped to those of a common screen.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_video(file_t file, limits_t const &limits, sampling_t sampling, video_t &video,
                           fault_t &fault) noexcept;

uform_status_t decode_video(file_t file, limits_t const &limits, sampling_t sampling, picture_t size, uint8_t *rgb,
                            size_t &frames, fault_t &fault) noexcept;

} // namespace uform
