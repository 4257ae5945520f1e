#include "media/clips/mixdown.h"

#include <cmath>
#include <cstdint>

extern "C" {
#include <libavutil/samplefmt.h>
}

namespace uform {
namespace {

/** `zero` is the value of silence, `scale` the reciprocal of full scale. */
template <typename sample_type_>
bool mix(AVFrame const &frame, bool planar, double zero, double scale, float *mono) noexcept {
    size_t const channels = size_t(frame.ch_layout.nb_channels), count = size_t(frame.nb_samples);
    double const share = scale / double(channels);
    bool finite = true;
    for (size_t index = 0; index != count; ++index) {
        double sum = 0;
        for (size_t channel = 0; channel != channels; ++channel) {
            uint8_t const *const plane = frame.extended_data[planar ? channel : 0];
            sum += double(reinterpret_cast<sample_type_ const *>(plane)[planar ? index : index * channels + channel]);
        }
        mono[index] = float((sum - zero * double(channels)) * share);
        finite &= std::isfinite(mono[index]);
    }
    return finite;
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
