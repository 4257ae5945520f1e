#include "audio_source.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../kernels/packed.h"
#include "../media/fault.h"
#include "../media/mel.h"

namespace uform {
namespace {

/** 60 dB above full scale: no recording is, but samples of 16 bits that nobody has divided by 32,768 are. */
constexpr float loudest_k = 1000.f;

uform_status_t check_samples(float const *samples, size_t count, fault_t &fault) noexcept {
    // Comparisons are false for NaN. No branch in the loop: it runs over every sample.
    bool fine = true;
    for (size_t index = 0; index != count; ++index) fine &= std::fabs(samples[index]) <= loudest_k;
    if (fine) return uform_success_k;
    size_t index = 0;
    while (std::fabs(samples[index]) <= loudest_k) ++index;
    return refuse(fault, uform_malformed_k, "sample %zu is %g, and samples are to be in [-1, 1]", index,
                  static_cast<double>(samples[index]));
}

/** The most samples at `rate` Hz that `count` of them at the model's rate can come from, with a second to spare. */
uint64_t samples_at(uint64_t count, uint32_t rate) noexcept {
    return (count + mel_sample_rate_k) * rate / mel_sample_rate_k;
}

} // namespace

size_t audio_source_t::most_samples() const noexcept {
    return config_.context * config_.audio.frames_per_token * mel_hop_k;
}

size_t audio_source_t::room(segment_t const &segment) const noexcept {
    return segment.times * config_.audio.frames_per_token * mel_hop_k;
}

size_t audio_source_t::tokens_of(size_t samples) const noexcept {
    size_t const frames = config_.audio.frames_per_token;
    return (mel_frames(samples) + frames - 1) / frames;
}

size_t audio_source_t::scratch_bytes(segment_t const &segment) const noexcept {
    size_t const frames = segment.times * config_.audio.frames_per_token;
    return frames * (mel_bins_k + mel_hop_k) * sizeof(float);
}

float *audio_source_t::samples_in(segment_t const &segment, std::byte *scratch) const noexcept {
    return reinterpret_cast<float *>(scratch) + segment.times * config_.audio.frames_per_token * mel_bins_k;
}

uform_status_t audio_source_t::finish(segment_t const &segment, std::byte *scratch, float const *samples, size_t count,
                                      size_t &times) const noexcept {
    fault_t fault;
    times = 0;
    if (check_samples(samples, count, fault)) return refuse_item(segment.item, fault);
    log_mel(samples, count, reinterpret_cast<float *>(scratch));
    notes[segment.item].extent = count;
    times = tokens_of(count);
    return uform_success_k;
}

void audio_source_t::patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                             size_t stride) const noexcept {
    auto const *frames = reinterpret_cast<float const *>(scratch);
    size_t const last = mel_frames(notes[segment.item].extent) - 1, per_token = config_.audio.frames_per_token;
    for (size_t token = first; token != first + count; ++token, out += stride)
        for (size_t index = 0; index != per_token; ++index) {
            size_t const frame = std::min(token * per_token + index, last);
            std::memcpy(out + index * mel_bins_k, frames + frame * mel_bins_k, mel_bins_k * sizeof(float));
        }
}

uform_status_t audio_files_t::probe(size_t item, segment_t &segment, fault_t &fault) const noexcept {
    audio_t audio;
    file_t const file = file_of(files_, item);
    if (uform_status_t const status =
            codecs_.probe_audio(file, limits_, mel_sample_rate_k, most_samples(), audio, fault))
        return status;
    segment.times = tokens_of(audio.samples);
    notes[item].truncated = audio.truncated;
    return uform_success_k;
}

uform_status_t audio_files_t::decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept {
    fault_t fault;
    size_t count = 0;
    float *const samples = samples_in(segment, scratch);
    file_t const file = file_of(files_, segment.item);
    if (codecs_.decode_audio(file, limits_, mel_sample_rate_k, room(segment), samples, count, fault)) {
        times = 0;
        return refuse_item(segment.item, fault);
    }
    notes[segment.item].truncated &= count == most_samples();
    return finish(segment, scratch, samples, count, times);
}

uform_status_t audio_samples_t::probe(size_t item, segment_t &segment, fault_t &fault) const noexcept {
    uform_samples_t const &samples = samples_[item];
    if (!samples.data && samples.count) return refuse(fault, uform_invalid_argument_k, "its data must not be NULL");
    uint64_t const most = most_samples();
    // In this order nothing overflows: what is past the context is not counted.
    uint64_t const read = std::min<uint64_t>(samples.count, samples_at(most, rate_));
    uint64_t const count = (read * mel_sample_rate_k + rate_ - 1) / rate_;
    segment.times = tokens_of(std::min(count, most));
    notes[item].truncated = count > most;
    return uform_success_k;
}

uform_status_t audio_samples_t::decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept {
    uform_samples_t const &samples = samples_[segment.item];
    size_t const most = room(segment);
    if (!codecs_) return finish(segment, scratch, samples.data, std::min(samples.count, most), times);
    fault_t fault;
    size_t const read = std::min<uint64_t>(samples.count, samples_at(most_samples(), rate_));
    float *const resampled = samples_in(segment, scratch);
    size_t count = 0;
    uform_status_t status = check_samples(samples.data, read, fault);
    if (!status)
        status = codecs_->resample(samples.data, read, rate_, mel_sample_rate_k, most, resampled, count, fault);
    if (!status) return finish(segment, scratch, resampled, count, times);
    times = 0;
    return refuse_item(segment.item, fault);
}

} // namespace uform
