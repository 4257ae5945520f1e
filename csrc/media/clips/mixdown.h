/** Frames of sound as mono float: the plain mean of the channels, full scale at 1. */
#pragma once

extern "C" {
#include <libavutil/frame.h>
}

namespace uform {

/** Whether `mix_down` takes samples of the frame's format. */
bool can_mix_down(AVFrame const &frame) noexcept;

/** Writes `frame.nb_samples` means to `mono`; false when one is not finite. */
bool mix_down(AVFrame const &frame, float *mono) noexcept;

} // namespace uform
