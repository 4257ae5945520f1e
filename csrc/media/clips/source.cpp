#include "media/clips/source.h"

#include <algorithm>
#include <cstring>
#include <mutex>

#include "media/fault.h"

extern "C" {
#include <libavutil/log.h>
}

namespace uform {
namespace {

/** Small, because what seeking backwards throws away is read again. */
constexpr int buffer_length_k = 1 << 14;
/** Tracks that are stored apart and indices make a demuxer read parts twice, not more. */
constexpr uint64_t reads_of_a_byte_k = 8;
constexpr uint64_t spare_reads_k = uint64_t(1) << 22;
/** A pixel of the deepest formats, times the frames that decoders keep for reference. */
constexpr uint64_t decoder_bytes_per_pixel_k = 64;
constexpr int64_t most_frame_samples_k = 1 << 20;

thread_local unsigned quiet_depth = 0;
thread_local char first_error[128];

void note(void *context, int level, char const *format, va_list arguments) {
    if (!quiet_depth) return av_log_default_callback(context, level, format, arguments);
    if (level > AV_LOG_ERROR || first_error[0]) return;
    std::vsnprintf(first_error, sizeof(first_error), format, arguments);
    first_error[std::strcspn(first_error, "\r\n")] = 0;
    size_t length = std::strlen(first_error);
    while (length && first_error[length - 1] == '.') first_error[--length] = 0;
}

AVInputFormat const *demuxer(container_t container) noexcept {
    switch (container) {
    case container_t::mov_k: return av_find_input_format("mov");
    case container_t::matroska_k: return av_find_input_format("matroska");
    case container_t::wav_k: return av_find_input_format("wav");
    case container_t::flac_k: return av_find_input_format("flac");
    case container_t::mp3_k: return av_find_input_format("mp3");
    case container_t::ogg_k: return av_find_input_format("ogg");
    }
    return nullptr;
}

bool supported(AVCodecID codec) noexcept {
    switch (codec) {
    case AV_CODEC_ID_H264:
    case AV_CODEC_ID_HEVC:
    case AV_CODEC_ID_VP8:
    case AV_CODEC_ID_VP9:
    case AV_CODEC_ID_AV1:
    case AV_CODEC_ID_FLAC:
    case AV_CODEC_ID_MP3:
    case AV_CODEC_ID_OPUS:
    case AV_CODEC_ID_PCM_U8:
    case AV_CODEC_ID_PCM_S8:
    case AV_CODEC_ID_PCM_S16LE:
    case AV_CODEC_ID_PCM_S16BE:
    case AV_CODEC_ID_PCM_S24LE:
    case AV_CODEC_ID_PCM_S24BE:
    case AV_CODEC_ID_PCM_S32LE:
    case AV_CODEC_ID_PCM_S32BE:
    case AV_CODEC_ID_PCM_S64LE:
    case AV_CODEC_ID_PCM_F32LE:
    case AV_CODEC_ID_PCM_F32BE:
    case AV_CODEC_ID_PCM_F64LE:
    case AV_CODEC_ID_PCM_F64BE:
    case AV_CODEC_ID_PCM_MULAW:
    case AV_CODEC_ID_PCM_ALAW: return true;
    default: return false;
    }
}

int refuse_reference(AVFormatContext *, AVIOContext **, char const *, int, AVDictionary **) { return AVERROR(EPERM); }

} // namespace

quiet_t::quiet_t() noexcept {
    static std::once_flag once;
    std::call_once(once, [] { av_log_set_callback(note); });
    if (quiet_depth++ == 0) first_error[0] = 0;
}

quiet_t::~quiet_t() noexcept { --quiet_depth; }

uform_status_t refuse_code(fault_t &fault, int code, char const *deed) noexcept {
    if (code == AVERROR(ENOMEM)) return refuse(fault, uform_out_of_memory_k, "no memory while %s", deed);
    char words[AV_ERROR_MAX_STRING_SIZE] = {};
    av_strerror(code, words, sizeof(words));
    return refuse(fault, uform_malformed_k, "%s failed: %s%s%s", deed, words, first_error[0] ? ": " : "", first_error);
}

int source_t::read(void *self, uint8_t *buffer, int length) noexcept {
    source_t &source = *static_cast<source_t *>(self);
    size_t const count = std::min(size_t(length), source.file_.length - source.position_);
    if (!count) return AVERROR_EOF;
    if (count > source.allowance_) return AVERROR(EIO);
    std::memcpy(buffer, source.file_.data + source.position_, count);
    source.position_ += count, source.allowance_ -= count;
    return int(count);
}

int64_t source_t::seek(void *self, int64_t offset, int whence) noexcept {
    source_t &source = *static_cast<source_t *>(self);
    int64_t const length = int64_t(source.file_.length);
    switch (whence & ~AVSEEK_FORCE) {
    case AVSEEK_SIZE: return length;
    case SEEK_SET: break;
    case SEEK_CUR: offset += int64_t(source.position_); break;
    case SEEK_END: offset += length; break;
    default: return AVERROR(EINVAL);
    }
    if (offset < 0 || offset > length) return AVERROR(EINVAL);
    source.position_ = size_t(offset);
    return offset;
}

source_t::~source_t() noexcept {
    avformat_close_input(&format_);
    if (bytes_) av_freep(&bytes_->buffer);
    avio_context_free(&bytes_);
}

uform_status_t source_t::open(file_t file, limits_t const &limits, AVMediaType type, fault_t &fault) noexcept {
    if (uform_status_t const status = tell_container(file, container_, fault)) return status;
    bool const video = type == AVMEDIA_TYPE_VIDEO;
    if (video && container_ != container_t::mov_k && container_ != container_t::matroska_k)
        return refuse(fault, uform_unsupported_layout_k, "a recording, not a video in MP4 or WebM");
    file_ = file;
    allowance_ = reads_of_a_byte_k * file.length + spare_reads_k;
    uint8_t *const buffer = static_cast<uint8_t *>(av_malloc(buffer_length_k));
    if (buffer) bytes_ = avio_alloc_context(buffer, buffer_length_k, 0, this, read, nullptr, seek);
    if (!bytes_) return av_free(buffer), refuse_code(fault, AVERROR(ENOMEM), "opening");
    format_ = avformat_alloc_context();
    if (!format_) return refuse_code(fault, AVERROR(ENOMEM), "opening");
    format_->pb = bytes_;
    format_->io_open = refuse_reference;
    format_->max_streams = 64;
    // Some headers leave room for doubt about the codec, which every demuxer would be asked to settle by the packets.
    format_->max_probe_packets = 1;
    format_->flags |= AVFMT_FLAG_CUSTOM_IO;
    AVInputFormat const *const format = demuxer(container_);
    if (!format) return refuse(fault, uform_unsupported_k, "this FFmpeg was built without the container's demuxer");
    int code = avformat_open_input(&format_, nullptr, format, nullptr);
    if (code < 0) return refuse_code(fault, code, "reading the header");

    bool other = false; // Whether there are tracks of the type, in other codecs.
    for (unsigned index = 0; index != format_->nb_streams; ++index) {
        AVStream *const stream = format_->streams[index];
        stream->discard = AVDISCARD_ALL;
        constexpr int pictures_k = AV_DISPOSITION_ATTACHED_PIC | AV_DISPOSITION_TIMED_THUMBNAILS;
        if (stream->codecpar->codec_type != type || stream->disposition & pictures_k) continue;
        if (!supported(stream->codecpar->codec_id)) other = true;
        else if (!track_ || (stream->disposition & ~track_->disposition & AV_DISPOSITION_DEFAULT)) track_ = stream;
    }
    char const *const name = video ? "video" : "sound";
    if (!track_ && !format_->nb_streams) return refuse(fault, uform_malformed_k, "no tracks in the file");
    if (!track_)
        return refuse(fault, uform_unsupported_layout_k,
                      other ? "its %s is in a codec that is not taken" : "no %s in it", name);
    track_->discard = AVDISCARD_DEFAULT;
    if (container_ == container_t::mp3_k) {
        // The header of this format is its first frames'.
        code = avformat_find_stream_info(format_, nullptr);
        if (code < 0) return refuse_code(fault, code, "reading the first frames");
    }
    AVCodecParameters const &parameters = *track_->codecpar;
    if (video) {
        if (parameters.width <= 0 || parameters.height <= 0)
            return refuse(fault, uform_malformed_k, "a video without a size");
        uint64_t const pixels = uint64_t(parameters.width) * uint64_t(parameters.height);
        uint64_t const most = std::min(limits.pixels, limits.bytes / decoder_bytes_per_pixel_k);
        if (pixels > most)
            return refuse(fault, uform_malformed_k, "frames of %d x %d pixels, over the limit of %llu",
                          parameters.width, parameters.height, static_cast<unsigned long long>(most));
    }
    double const seconds =
        track_->duration == AV_NOPTS_VALUE ? 0 : double(track_->duration) * av_q2d(track_->time_base);
    if (seconds > double(limits.seconds))
        return refuse(fault, uform_malformed_k, "%.0f seconds are over the limit of %llu", seconds,
                      static_cast<unsigned long long>(limits.seconds));
    return uform_success_k;
}

uform_status_t source_t::open_decoder(limits_t const &limits, decoder_ptr_t &decoder, fault_t &fault) const noexcept {
    AVCodec const *const codec = avcodec_find_decoder(track_->codecpar->codec_id);
    if (!codec)
        return refuse(fault, uform_unsupported_k, "this FFmpeg was built without a decoder for %s",
                      avcodec_get_name(track_->codecpar->codec_id));
    decoder.reset(avcodec_alloc_context3(codec));
    if (!decoder) return refuse_code(fault, AVERROR(ENOMEM), "opening the decoder");
    int code = avcodec_parameters_to_context(decoder.get(), track_->codecpar);
    if (code < 0) return refuse_code(fault, code, "opening the decoder");
    decoder->pkt_timebase = track_->time_base;
    decoder->thread_count = 1;
    // A video that was cut out of a longer one lacks frames that its first ones refer to, and is no worse for it. This
    // decoder would stop there; it marks the frames that do not decode anyway.
    decoder->err_recognition = codec->id == AV_CODEC_ID_H264 ? 0 : AV_EF_CRCCHECK | AV_EF_EXPLODE;
    decoder->max_pixels = int64_t(std::min(limits.pixels, limits.bytes / decoder_bytes_per_pixel_k));
    decoder->max_samples = most_frame_samples_k;
    code = avcodec_open2(decoder.get(), codec, nullptr);
    if (code < 0) return refuse_code(fault, code, "opening the decoder");
    return uform_success_k;
}

uform_status_t source_t::next(AVPacket &packet, bool &ended, fault_t &fault) noexcept {
    for (;;) {
        av_packet_unref(&packet);
        int const code = av_read_frame(format_, &packet);
        ended = code == AVERROR_EOF;
        if (ended) return uform_success_k;
        if (code < 0) return refuse_code(fault, code, "reading");
        if (packet.stream_index != track_->index) continue;
        if (packet.flags & AV_PKT_FLAG_CORRUPT) return refuse(fault, uform_malformed_k, "a packet is cut");
        return uform_success_k;
    }
}

} // namespace uform
