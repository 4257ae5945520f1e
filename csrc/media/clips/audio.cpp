#include "media/clips/audio.h"

#include <algorithm>

#include "media/clips/mixdown.h"
#include "media/clips/resampler.h"
#include "media/clips/source.h"
#include "media/fault.h"

extern "C" {
#include <libavutil/intreadwrite.h>
}

namespace uform {
namespace {

constexpr uint32_t least_rate_k = 1000, most_rate_k = 768000;
/** Tags and cut frames around the sound of an MP3 stream are no reason to refuse it. */
constexpr size_t most_bad_mp3_packets_k = 2;

/** The limit in samples; 48 days bound what is computed from it. */
uint64_t limit_samples(limits_t const &limits, uint32_t rate) noexcept {
    return std::min<uint64_t>(limits.seconds, 1 << 22) * rate;
}

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

constexpr int flac_header_length_k = 34;

/** RFC 9639, section 8.2: the stream's description, which containers carry along. None when it is missing. */
uint8_t const *flac_header(AVCodecParameters const &parameters) noexcept {
    return parameters.extradata_size >= flac_header_length_k ? parameters.extradata : nullptr;
}

/** RFC 9639, section 9.1: samples of a FLAC frame. */
uint64_t flac_samples(uint8_t const *data, size_t length) noexcept {
    if (length < 6) return 0;
    unsigned const code = data[2] >> 4;
    if (code < 2) return code * 192; // 0 is reserved.
    if (code < 6) return 576u << (code - 2) & 0xffff;
    if (code > 7) return 256u << (code - 8);
    // The length follows a number that is coded as in UTF-8.
    size_t const ones = size_t(__builtin_clz(~(uint32_t(data[4]) << 24)));
    size_t const offset = 4 + (ones ? ones : 1), bytes = code - 5;
    return offset + bytes > length ? 0 : (bytes == 1 ? data[offset] : AV_RB16(data + offset)) + 1;
}

/** An upper bound of the samples in a packet. */
uint64_t packet_samples(AVCodecParameters const &parameters, AVPacket const &packet) noexcept {
    switch (parameters.codec_id) {
    case AV_CODEC_ID_OPUS: return opus_samples(packet.data, size_t(packet.size));
    case AV_CODEC_ID_FLAC: return flac_samples(packet.data, size_t(packet.size));
    case AV_CODEC_ID_MP3: return parameters.sample_rate < 32000 ? 576 : 1152;
    default: break;
    }
    int const bits = av_get_bits_per_sample(parameters.codec_id) * parameters.ch_layout.nb_channels;
    return bits ? uint64_t(packet.size) * 8 / unsigned(bits) : 0;
}

/** Samples around a packet that are not to be heard: the encoder's delay, which may be longer than it, and padding. */
uint64_t skipped_samples(AVPacket const &packet) noexcept {
    size_t length = 0;
    uint8_t const *const skip = av_packet_get_side_data(&packet, AV_PKT_DATA_SKIP_SAMPLES, &length);
    return skip && length >= 8 ? uint64_t(AV_RL32(skip)) + AV_RL32(skip + 4) : 0;
}

/** The track's rate, where it is one that is taken. */
uform_status_t track_rate(source_t const &source, uint32_t &rate, fault_t &fault) noexcept {
    AVCodecParameters const &parameters = *source.track().codecpar;
    int told = parameters.sample_rate;
    if (parameters.codec_id == AV_CODEC_ID_OPUS) told = 48000;
    if (parameters.codec_id == AV_CODEC_ID_FLAC) {
        uint8_t const *const header = flac_header(parameters);
        if (!header) return refuse(fault, uform_malformed_k, "a FLAC stream without its description");
        told = int(AV_RB24(header + 10) >> 4);
    }
    if (told < int(least_rate_k) || told > int(most_rate_k))
        return refuse(fault, uform_unsupported_layout_k, "%d samples a second, not %u to %u", told, least_rate_k,
                      most_rate_k);
    rate = uint32_t(told);
    return uform_success_k;
}

/** An upper bound of the track's samples at its own rate, from headers where they suffice; reads what it needs. */
uform_status_t count_samples(source_t &source, uint32_t rate, uint64_t most, uint64_t &samples,
                             fault_t &fault) noexcept {
    AVStream const &track = source.track();
    AVCodecParameters const &parameters = *track.codecpar;
    uint64_t const told = track.duration > 0 ? uint64_t(track.duration) : UINT64_MAX;
    if (source.container() == container_t::flac_k) {
        constexpr uint64_t least_block_bytes_k = 8;
        uint64_t const longest_block = AV_RB16(flac_header(parameters) + 2);
        samples = std::min(told, source.left() / least_block_bytes_k * longest_block);
        return uform_success_k;
    }
    if (source.container() == container_t::wav_k && is_pcm(parameters.codec_id)) {
        int const bits = av_get_bits_per_sample(parameters.codec_id) * parameters.ch_layout.nb_channels;
        if (!bits) return refuse(fault, uform_malformed_k, "a recording without channels");
        samples = std::min(told, uint64_t(source.left()) * 8 / unsigned(bits));
        return uform_success_k;
    }
    packet_ptr_t const packet(av_packet_alloc());
    if (!packet) return refuse_code(fault, AVERROR(ENOMEM), "reading");
    // Opus in WebM starts with what the codec's header says, not a packet.
    bool const early = parameters.codec_id == AV_CODEC_ID_OPUS && source.container() == container_t::matroska_k;
    uint64_t skipped = early ? uint64_t(std::max(parameters.initial_padding, 0)) : 0;
    int64_t end = 0;
    for (samples = 0; samples <= most + skipped;) {
        bool ended = false;
        if (uform_status_t const status = source.next(*packet, ended, fault)) return status;
        if (ended) break;
        if (packet->flags & AV_PKT_FLAG_DISCARD) continue;
        samples += packet_samples(parameters, *packet), skipped += skipped_samples(*packet);
        if (packet->pts != AV_NOPTS_VALUE) end = std::max(end, packet->pts + std::max<int64_t>(packet->duration, 0));
    }
    samples -= std::min(samples, skipped);
    // In MP4, what is heard starts at zero, and the last packet is heard for as long as it says.
    if (source.container() == container_t::mov_k)
        samples = std::min(samples, uint64_t(av_rescale_rnd(end, int64_t(track.time_base.num) * rate,
                                                            track.time_base.den, AV_ROUND_UP)));
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
        if (decoded_ > limit_samples(limits_, from_))
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
    if (!status) status = count_samples(source, from, limit_samples(limits, from), native, fault);
    if (status) return status;
    if (native > limit_samples(limits, from))
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
