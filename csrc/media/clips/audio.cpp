#include "media/clips/audio.h"

#include <algorithm>

#include "media/clips/fault.h"
#include "media/clips/mixdown.h"
#include "media/clips/resampler.h"
#include "media/clips/source.h"

extern "C" {
#include <libavutil/intreadwrite.h>
}

namespace uform {
namespace {

constexpr uint32_t least_rate_k = 1000, most_rate_k = 768000;
/** Tags and cut frames around the sound of an MP3 stream are no reason to refuse it. */
constexpr size_t most_bad_mp3_packets_k = 2;

bool is_pcm(AVCodecID codec) noexcept { return codec >= AV_CODEC_ID_PCM_S16LE && codec < AV_CODEC_ID_ADPCM_IMA_QT; }

/** RFC 6716, section 3.1: samples at 48 kHz. */
uint64_t opus_samples(uint8_t const *data, size_t length) noexcept {
    if (!length) return 0;
    unsigned const mode = data[0] >> 3, frames = data[0] & 3;
    unsigned const samples = mode < 12   ? (mode & 3) == 3 ? 2880u : 480u << (mode & 3)
                             : mode < 16 ? 480u << (mode & 1)
                                         : 120u << (mode & 3);
    return uint64_t(samples) * (frames == 0 ? 1 : frames != 3 ? 2 : length > 1 ? data[1] & 63 : 0);
}

/** The longest block of a FLAC stream. */
uint64_t flac_block(AVCodecParameters const &parameters) noexcept {
    return parameters.extradata_size >= 4 ? AV_RB16(parameters.extradata + 2) : 65535;
}

/** An upper bound of the samples in a packet. */
uint64_t packet_samples(AVCodecParameters const &parameters, AVPacket const &packet) noexcept {
    uint64_t samples = 0;
    switch (parameters.codec_id) {
    case AV_CODEC_ID_OPUS: samples = opus_samples(packet.data, size_t(packet.size)); break;
    case AV_CODEC_ID_FLAC: samples = flac_block(parameters); break;
    case AV_CODEC_ID_MP3: samples = parameters.sample_rate < 32000 ? 576 : 1152; break;
    default: {
        int const bits = av_get_bits_per_sample(parameters.codec_id) * parameters.ch_layout.nb_channels;
        samples = bits ? uint64_t(packet.size) * 8 / unsigned(bits) : 0;
    }
    }
    size_t length = 0;
    uint8_t const *const skip = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &length);
    if (!skip || length < 8) return samples;
    return samples - std::min(samples, uint64_t(AV_RL32(skip)) + AV_RL32(skip + 4));
}

/** The track's rate, where it is one that is taken. */
uform_status_t track_rate(source_t const &source, uint32_t &rate, fault_t &fault) noexcept {
    AVCodecParameters const &parameters = *source.track().codecpar;
    int const told = parameters.codec_id == AV_CODEC_ID_OPUS ? 48000 : parameters.sample_rate;
    if (told < int(least_rate_k) || told > int(most_rate_k))
        return refuse(fault, uform_unsupported_layout_k, "%d samples a second, not %u to %u", told, least_rate_k,
                      most_rate_k);
    rate = uint32_t(told);
    return uform_success_k;
}

/** An upper bound of the track's samples at its own rate, from headers where they suffice; reads what it needs. */
uform_status_t count_samples(source_t &source, size_t file_length, uint64_t most, uint64_t &samples,
                             fault_t &fault) noexcept {
    AVStream const &track = source.track();
    AVCodecParameters const &parameters = *track.codecpar;
    uint64_t const told = track.duration > 0 ? uint64_t(track.duration) : UINT64_MAX;
    if (source.container() == container_t::flac_k) {
        constexpr uint64_t least_block_bytes_k = 8;
        samples = std::min(told, file_length / least_block_bytes_k * flac_block(parameters));
        return uform_success_k;
    }
    if (source.container() == container_t::wav_k && is_pcm(parameters.codec_id)) {
        int const bits = av_get_bits_per_sample(parameters.codec_id) * parameters.ch_layout.nb_channels;
        if (!bits) return refuse(fault, uform_malformed_k, "a recording without channels");
        samples = std::min(told, uint64_t(file_length) * 8 / unsigned(bits));
        return uform_success_k;
    }
    packet_ptr_t const packet(av_packet_alloc());
    if (!packet) return refuse_code(fault, AVERROR(ENOMEM), "reading");
    for (samples = 0; samples <= most;) {
        bool ended = false;
        if (uform_status_t const status = source.next(*packet, ended, fault)) return status;
        if (ended) break;
        if (!(packet->flags & AV_PKT_FLAG_DISCARD)) samples += packet_samples(parameters, *packet);
    }
    return uform_success_k;
}

/** From packets to samples. */
class recording_t {
  public:
    recording_t(limits_t const &limits, uint32_t from, resampler_t &resampler, fault_t &fault) noexcept
        : limits_(limits), from_(from), resampler_(resampler), fault_(fault) {}
    ~recording_t() noexcept { av_free(mono_); }
    recording_t(recording_t const &) = delete;
    recording_t &operator=(recording_t const &) = delete;

    uform_status_t open(source_t const &source) noexcept {
        packet_.reset(av_packet_alloc()), frame_.reset(av_frame_alloc());
        if (!packet_ || !frame_) return refuse_code(fault_, AVERROR(ENOMEM), "opening the decoder");
        return source.open_decoder(limits_, decoder_, fault_);
    }

    uform_status_t decode(source_t &source) noexcept {
        size_t bad = 0;
        bool const tolerant = source.track().codecpar->codec_id == AV_CODEC_ID_MP3;
        for (bool ended = false; !ended && !resampler_.full();) {
            if (uform_status_t const status = source.next(*packet_, ended, fault_)) return status;
            int const code = avcodec_send_packet(decoder_.get(), ended ? nullptr : packet_.get());
            if (code == AVERROR_INVALIDDATA && tolerant && ++bad <= most_bad_mp3_packets_k) continue;
            if (code < 0) return refuse_code(fault_, code, "decoding");
            if (uform_status_t const status = drain(tolerant, bad)) return status;
        }
        if (resampler_.full()) return uform_success_k;
        bool const told = source.container() == container_t::flac_k && source.track().duration > 0;
        if (told && decoded_ < uint64_t(source.track().duration))
            return refuse(fault_, uform_malformed_k, "truncated: %llu samples of %lld",
                          static_cast<unsigned long long>(decoded_), static_cast<long long>(source.track().duration));
        return uform_success_k;
    }

  private:
    uform_status_t drain(bool tolerant, size_t &bad) noexcept {
        for (;;) {
            int const code = avcodec_receive_frame(decoder_.get(), frame_.get());
            if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) return uform_success_k;
            if (code == AVERROR_INVALIDDATA && tolerant && ++bad <= most_bad_mp3_packets_k) continue;
            if (code < 0) return refuse_code(fault_, code, "decoding");
            if (uform_status_t const status = take(*frame_)) return status;
            if (resampler_.full()) return uform_success_k;
        }
    }

    uform_status_t take(AVFrame const &frame) noexcept {
        size_t const count = size_t(frame.nb_samples);
        decoded_ += count;
        if (decoded_ > limits_.seconds * from_)
            return refuse(fault_, uform_malformed_k, "longer than the limit of %llu seconds",
                          static_cast<unsigned long long>(limits_.seconds));
        if (uint32_t(frame.sample_rate) != from_) return refuse(fault_, uform_malformed_k, "its rate changes");
        if (!can_mix_down(frame)) return refuse(fault_, uform_unsupported_layout_k, "samples of an unknown kind");
        av_fast_malloc(&mono_, &mono_bytes_, count * sizeof(float));
        if (!mono_) return refuse_code(fault_, AVERROR(ENOMEM), "decoding");
        float *const mono = static_cast<float *>(mono_);
        if (!mix_down(frame, mono)) return refuse(fault_, uform_malformed_k, "samples that are not finite");
        return resampler_.push(mono, count, fault_);
    }

    limits_t const &limits_;
    uint32_t const from_;
    resampler_t &resampler_;
    fault_t &fault_;
    packet_ptr_t packet_;
    frame_ptr_t frame_;
    decoder_ptr_t decoder_;
    uint64_t decoded_ = 0;
    void *mono_ = nullptr;
    unsigned mono_bytes_ = 0;
};

/** The bound of a recording's samples after resampling, not yet cut to what is asked for. */
uform_status_t bound_samples(file_t file, limits_t const &limits, uint32_t rate, uint32_t &from, uint64_t &samples,
                             fault_t &fault) noexcept {
    if (rate < least_rate_k || rate > most_rate_k)
        return refuse(fault, uform_invalid_argument_k, "%u samples a second are asked for, not %u to %u", rate,
                      least_rate_k, most_rate_k);
    source_t source;
    uform_status_t status = source.open(file, limits, AVMEDIA_TYPE_AUDIO, fault);
    if (!status) status = track_rate(source, from, fault);
    uint64_t native = 0;
    if (!status) status = count_samples(source, file.length, limits.seconds * from, native, fault);
    if (status) return status;
    if (native > limits.seconds * from)
        return refuse(fault, uform_malformed_k, "longer than the limit of %llu seconds",
                      static_cast<unsigned long long>(limits.seconds));
    samples = resampled(native, from, rate);
    return uform_success_k;
}

} // namespace

uform_status_t probe_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, audio_t &audio,
                           fault_t &fault) noexcept {
    quiet_t const quiet;
    uint32_t from = 0;
    uint64_t samples = 0;
    if (uform_status_t const status = bound_samples(file, limits, rate, from, samples, fault)) return status;
    audio.samples = size_t(std::min<uint64_t>(samples, most_samples));
    audio.truncated = samples > most_samples;
    return uform_success_k;
}

uform_status_t decode_audio(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples, float *samples,
                            size_t &count, fault_t &fault) noexcept {
    quiet_t const quiet;
    count = 0;
    uint32_t from = 0;
    uint64_t bound = 0;
    if (uform_status_t const status = bound_samples(file, limits, rate, from, bound, fault)) return status;
    source_t source;
    resampler_t resampler(samples, size_t(std::min<uint64_t>(bound, most_samples)));
    recording_t recording(limits, from, resampler, fault);
    uform_status_t status = source.open(file, limits, AVMEDIA_TYPE_AUDIO, fault);
    if (!status) status = recording.open(source);
    if (!status) status = resampler.open(from, rate, fault);
    if (!status) status = recording.decode(source);
    if (!status) status = resampler.finish(fault);
    if (!status) count = resampler.count();
    return status;
}

} // namespace uform
