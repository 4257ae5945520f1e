/**
 *  The audio front end: logarithms of the power in bands of the mel scale, as the checkpoint format defines them.
 *
 *  Samples are mono at 16 kHz, in [-1, 1]. Frame `f` is centred on sample `160 f` and sees the 400 samples (25 ms)
 *  around it under a periodic Hann window; past either end, the recording is mirrored about its first or last sample as
 *  often as it takes. There is a frame for every hop (10 ms) that was started: `ceil(samples / 160)`.
 *
 *  The power |DFT|^2 of a frame, at 201 frequencies from 0 to 8000 Hz, is weighted by 80 triangles of unit area that
 * are evenly spaced on Slaney's mel scale (linear to 1 kHz, logarithmic above; M. Slaney, Auditory Toolbox, 1998). A
 * band's value is `(max(log10(max(power, 1e-10)), loudest - 8) + 4) / 4`, where `loudest` is the largest logarithm of
 * the whole recording (A. Radford et al., Robust Speech Recognition via Large-Scale Weak Supervision, 2022).
 *
 *  Within 1e-4 of the same in float64. Some 11 thousand floating-point operations a frame.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

constexpr uint32_t mel_sample_rate_k = 16000; /**< Hz */
constexpr size_t mel_window_k = 400;          /**< Samples that a frame sees. */
constexpr size_t mel_hop_k = 160;             /**< Samples from a frame to the next. */
constexpr size_t mel_bins_k = 80;             /**< Bands of a frame. */

/** How many frames a recording gives: none without samples, otherwise at least one. */
constexpr size_t mel_frames(size_t samples) noexcept { return samples / mel_hop_k + (samples % mel_hop_k != 0); }

/**
 *  Log-mel frames of a recording.
 *  @param[in] samples [count], finite.
 *  @param[out] frames [mel_frames(count), mel_bins_k]; must not overlap `samples`.
 */
void log_mel(float const *samples, size_t count, float *frames) noexcept;

} // namespace uform
