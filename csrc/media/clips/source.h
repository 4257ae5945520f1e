/**
 *  A clip in memory, opened as packets of its one video or sound track, and a decoder for them.
 *
 *  FFmpeg sees nothing but the bytes: no file, no network, no references to others. Containers and codecs are those of
 *  the contract. Decoders run on the calling thread alone. What FFmpeg would print goes into the fault.
 */
#pragma once
#include <memory>

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavformat/avformat.h>
}

#include "media/clips/container.h"

namespace uform {

struct release_packet_t {
    void operator()(AVPacket *packet) const noexcept { av_packet_free(&packet); }
};
struct release_frame_t {
    void operator()(AVFrame *frame) const noexcept { av_frame_free(&frame); }
};
struct release_decoder_t {
    void operator()(AVCodecContext *decoder) const noexcept { avcodec_free_context(&decoder); }
};
using packet_ptr_t = std::unique_ptr<AVPacket, release_packet_t>;
using frame_ptr_t = std::unique_ptr<AVFrame, release_frame_t>;
using decoder_ptr_t = std::unique_ptr<AVCodecContext, release_decoder_t>;

/** While one lives, FFmpeg's messages on this thread are kept from stderr, and the first error is noted. */
class quiet_t {
  public:
    quiet_t() noexcept;
    ~quiet_t() noexcept;
    quiet_t(quiet_t const &) = delete;
    quiet_t &operator=(quiet_t const &) = delete;
};

/** Fills in the fault from FFmpeg's error code and what it said: OUT_OF_MEMORY or MALFORMED. */
uform_status_t refuse_code(fault_t &fault, int code, char const *deed) noexcept;

/** Packets of one track. */
class source_t {
  public:
    source_t() noexcept = default;
    ~source_t() noexcept;
    source_t(source_t const &) = delete;
    source_t &operator=(source_t const &) = delete;

    /** The file must outlive the source. `type` is AVMEDIA_TYPE_VIDEO or _AUDIO. */
    uform_status_t open(file_t file, limits_t const &limits, AVMediaType type, fault_t &fault) noexcept;

    /** Opens a decoder for the track. */
    uform_status_t open_decoder(limits_t const &limits, decoder_ptr_t &decoder, fault_t &fault) const noexcept;

    /** Reads the track's next packet; success without a packet's data (`ended`) behind the last one. */
    uform_status_t next(AVPacket &packet, bool &ended, fault_t &fault) noexcept;

    container_t container() const noexcept { return container_; }
    /** Bytes that were not read yet. */
    size_t left() const noexcept { return file_.length - size_t(avio_tell(bytes_)); }
    AVStream const &track() const noexcept { return *track_; }

  private:
    static int read(void *self, uint8_t *buffer, int length) noexcept;
    static int64_t seek(void *self, int64_t offset, int whence) noexcept;

    file_t file_;
    size_t position_ = 0;
    uint64_t allowance_ = 0; /**< Bytes that may still be read: a file can send its reader in circles. */
    container_t container_ = container_t::mov_k;
    AVIOContext *bytes_ = nullptr;
    AVFormatContext *format_ = nullptr;
    AVStream *track_ = nullptr;
};

} // namespace uform
