/** Recordings: any sample format, channel count and rate, to mono float at the rate that is wanted. */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, audio_t &audio,
                           fault_t &fault) noexcept;

uform_status_t decode_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, float *samples,
                            size_t &count, fault_t &fault) noexcept;

} // namespace uform
