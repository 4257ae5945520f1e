#include "media/clips/video.h"

#include <cstring>
#include <utility>

#include "media/clips/converter.h"
#include "media/clips/timeline.h"
#include "media/fault.h"

namespace uform {
namespace {

/** Writes the picked frames as decoded ones come, in the order of showing. */
class picker_t {
  public:
    picker_t(timeline_t const &timeline, picture_t size, orientation_t orientation, uint8_t *rgb) noexcept
        : timeline_(timeline), converter_(size, orientation), frame_bytes_(size_t(size.width) * size.height * 3),
          rgb_(rgb) {}

    /** Makes room for a frame; false without memory. */
    bool open() noexcept {
        frame_.reset(av_frame_alloc()), held_.reset(av_frame_alloc());
        return frame_ && held_;
    }

    AVFrame *room() noexcept { return frame_.get(); }
    bool done() const noexcept { return written_ == timeline_.picked(); }
    size_t written() const noexcept { return written_; }

    /** Takes the frame in the room: what was due before it gets the frame before, or this one when it is the first. */
    uform_status_t take(fault_t &fault) noexcept {
        // The damage spreads to the frames that refer to it.
        if (frame_->decode_error_flags) return refuse(fault, uform_malformed_k, "a frame is damaged");
        int64_t const time = frame_->pts;
        if (time == AV_NOPTS_VALUE) return uform_success_k;
        ++number_;
        while (!done() && timeline_.pick(written_) <= time) {
            bool const due = timeline_.pick(written_) == time || number_ == 1;
            uform_status_t const status = due ? write(*frame_, number_, fault) : write(*held_, number_ - 1, fault);
            if (status) return status;
        }
        std::swap(frame_, held_);
        return uform_success_k;
    }

    /** The last frame is on show to the end. */
    uform_status_t finish(fault_t &fault) noexcept {
        if (done()) return uform_success_k;
        if (!number_) return refuse(fault, uform_malformed_k, "no frame of it can be decoded");
        while (!done())
            if (uform_status_t const status = write(*held_, number_, fault)) return status;
        return uform_success_k;
    }

  private:
    uform_status_t write(AVFrame const &frame, uint64_t number, fault_t &fault) noexcept {
        uint8_t *const to = rgb_ + written_ * frame_bytes_;
        if (number == written_number_) std::memcpy(to, to - frame_bytes_, frame_bytes_);
        else if (uform_status_t const status = converter_.convert(frame, to, fault)) return status;
        written_number_ = number;
        ++written_;
        return uform_success_k;
    }

    timeline_t const &timeline_;
    converter_t converter_;
    size_t const frame_bytes_;
    uint8_t *const rgb_;
    size_t written_ = 0;
    frame_ptr_t frame_, held_;
    uint64_t number_ = 0;         /**< Of the frame in the room; the one that is held has the number before. */
    uint64_t written_number_ = 0; /**< Of the frame that was written last. */
};

uform_status_t decode(source_t &source, AVCodecContext &decoder, timeline_t const &timeline, picker_t &picker,
                      fault_t &fault) noexcept {
    packet_ptr_t const packet(av_packet_alloc());
    if (!packet || !picker.open()) return refuse_code(fault, AVERROR(ENOMEM), "decoding");
    // These decoders tell which frames no other refers to, and leave them out unless they are picked.
    bool const may_skip = decoder.codec_id == AV_CODEC_ID_H264 || decoder.codec_id == AV_CODEC_ID_HEVC;
    for (bool ended = false; !ended && !picker.done();) {
        if (uform_status_t const status = source.next(*packet, ended, fault)) return status;
        if (!ended && !packet->size) continue;
        bool const wanted = packet->pts == AV_NOPTS_VALUE || timeline.picks(packet->pts);
        decoder.skip_frame = may_skip && !wanted ? AVDISCARD_NONREF : AVDISCARD_DEFAULT;
        int code = avcodec_send_packet(&decoder, ended ? nullptr : packet.get());
        if (code < 0) return refuse_code(fault, code, "decoding");
        while (!picker.done()) {
            code = avcodec_receive_frame(&decoder, picker.room());
            if (code == AVERROR(EAGAIN) || code == AVERROR_EOF) break;
            if (code < 0) return refuse_code(fault, code, "decoding");
            if (uform_status_t const status = picker.take(fault)) return status;
        }
    }
    return picker.finish(fault);
}

} // namespace

uform_status_t probe_video(file_t file, limits_t const &limits, sampling_t sampling, video_t &video,
                           fault_t &fault) noexcept {
    quiet_t const quiet;
    source_t source;
    timeline_t timeline;
    uform_status_t status = source.open(file, limits, AVMEDIA_TYPE_VIDEO, fault);
    if (!status) status = timeline.scan(source, sampling, limits, fault);
    if (status) return status;
    video = {viewed_size(source.track()), timeline.picked(), timeline.truncated()};
    return uform_success_k;
}

uform_status_t decode_video(file_t file, limits_t const &limits, sampling_t sampling, picture_t size, uint8_t *rgb,
                            size_t &frames, fault_t &fault) noexcept {
    quiet_t const quiet;
    frames = 0;
    timeline_t timeline;
    {
        source_t scanned;
        uform_status_t status = scanned.open(file, limits, AVMEDIA_TYPE_VIDEO, fault);
        if (!status) status = timeline.scan(scanned, sampling, limits, fault);
        if (status) return status;
    }
    source_t source;
    decoder_ptr_t decoder;
    uform_status_t status = source.open(file, limits, AVMEDIA_TYPE_VIDEO, fault);
    if (!status) status = source.open_decoder(limits, decoder, fault);
    if (status) return status;
    picker_t picker(timeline, size, orientation(source.track()), rgb);
    status = decode(source, *decoder, timeline, picker, fault);
    if (!status) frames = picker.written();
    return status;
}

} // namespace uform
