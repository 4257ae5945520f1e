#include "media/clips/mixdown.h"

#include <cstdint>
#include <type_traits>

extern "C" {
#include <libavutil/samplefmt.h>
}

namespace uform {
namespace {

/** `zero` is the value of silence, `scale` the reciprocal of full scale. `channels_` is 0 for any count of them. */
template <typename sample_type_, size_t channels_>
bool mix(AVFrame const &frame, bool planar, double zero, double scale, float *mono) noexcept {
    size_t const channels = channels_ ? channels_ : size_t(frame.ch_layout.nb_channels);
    size_t const count = size_t(frame.nb_samples), step = planar ? 1 : channels;
    double const share = scale / double(channels), silence = zero * double(channels);
    auto const first = [&](size_t channel) {
        uint8_t const *const plane = frame.extended_data[planar ? channel : 0];
        return reinterpret_cast<sample_type_ const *>(plane) + (planar ? 0 : channel);
    };
    sample_type_ const *const left = first(0), *const right = first(channels_ == 2);
    for (size_t index = 0; index != count; ++index) {
        double sum = double(left[index * step]);
        if constexpr (channels_ == 2) sum += double(right[index * step]);
        if constexpr (channels_ == 0)
            for (size_t channel = 1; channel != channels; ++channel) sum += double(first(channel)[index * step]);
        mono[index] = float((sum - silence) * share);
    }
    if constexpr (std::is_integral_v<sample_type_>) return true;
    // Zero times what is not finite is no number.
    float sum = 0;
    for (size_t index = 0; index != count; ++index) sum += mono[index] * 0;
    return sum == 0;
}

template <typename sample_type_>
bool mix(AVFrame const &frame, bool planar, double zero, double scale, float *mono) noexcept {
    switch (frame.ch_layout.nb_channels) {
    case 1: return mix<sample_type_, 1>(frame, planar, zero, scale, mono);
    case 2: return mix<sample_type_, 2>(frame, planar, zero, scale, mono);
    default: return mix<sample_type_, 0>(frame, planar, zero, scale, mono);
    }
}

} // namespace

bool can_mix_down(AVFrame const &frame) noexcept {
    switch (av_get_packed_sample_fmt(AVSampleFormat(frame.format))) {
    case AV_SAMPLE_FMT_U8:
    case AV_SAMPLE_FMT_S16:
    case AV_SAMPLE_FMT_S32:
    case AV_SAMPLE_FMT_S64:
    case AV_SAMPLE_FMT_FLT:
    case AV_SAMPLE_FMT_DBL: return frame.ch_layout.nb_channels > 0;
    default: return false;
    }
}

bool mix_down(AVFrame const &frame, float *mono) noexcept {
    AVSampleFormat const format = AVSampleFormat(frame.format);
    bool const planar = av_sample_fmt_is_planar(format) != 0;
    switch (av_get_packed_sample_fmt(format)) {
    case AV_SAMPLE_FMT_U8: return mix<uint8_t>(frame, planar, 128, 0x1p-7, mono);
    case AV_SAMPLE_FMT_S16: return mix<int16_t>(frame, planar, 0, 0x1p-15, mono);
    case AV_SAMPLE_FMT_S32: return mix<int32_t>(frame, planar, 0, 0x1p-31, mono);
    case AV_SAMPLE_FMT_S64: return mix<int64_t>(frame, planar, 0, 0x1p-63, mono);
    case AV_SAMPLE_FMT_FLT: return mix<float>(frame, planar, 0, 1, mono);
    case AV_SAMPLE_FMT_DBL: return mix<double>(frame, planar, 0, 1, mono);
    default: return false;
    }
}

} // namespace uform
