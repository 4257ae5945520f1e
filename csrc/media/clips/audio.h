/**
 *  Recordings: any sample format, channel count and rate, to mono float at the rate that is wanted. See codecs.h.
 *
 *  What the file says of its encoder's delay and padding is cut off: the length is that of what was encoded, at the
 * rate that is wanted, rounded up. Rates from 1 to 768 kHz are taken; one that changes on the way is MALFORMED.
 */
#pragma once
#include "media/codecs.h"

namespace uform {

uform_status_t probe_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, audio_t &audio,
                           fault_t &fault) noexcept;

uform_status_t decode_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, float *samples,
                            size_t &count, fault_t &fault) noexcept;

} // namespace uform
