#include "video_source.h"

#include <algorithm>

#include "../media/fault.h"
#include "../media/grid.h"

namespace uform {

uform_status_t video_files_t::probe(size_t item, segment_t &segment, fault_t &fault) const noexcept {
    video_config_t const &video = config_.video;
    video_t found;
    sampling_t const sampling = {video.frame_rate, video.max_frames};
    if (uform_status_t const status = codecs_.probe_video(file_of(files_, item), limits_, sampling, found, fault))
        return status;
    grid_t const grid =
        grid_of(found.picture, static_cast<uint32_t>(video.patch_side), static_cast<uint32_t>(video.max_patches));
    segment.rows = grid.rows;
    segment.columns = grid.columns;
    size_t const fitting = config_.context / (segment.rows * segment.columns);
    segment.times = std::min((found.frames + video.frames - 1) / video.frames, fitting);
    notes[item].truncated = found.truncated || found.frames > segment.times * video.frames;
    return uform_success_k;
}

size_t video_files_t::scratch_bytes(segment_t const &segment) const noexcept {
    return segment.tokens() * config_.video.patch_width();
}

uform_status_t video_files_t::decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept {
    video_config_t const &video = config_.video;
    file_t const file = file_of(files_, segment.item);
    size_t const most_frames = std::min(segment.times * video.frames, video.max_frames);
    sampling_t const sampling = {video.frame_rate, most_frames};
    picture_t const size = {static_cast<uint32_t>(segment.columns * video.patch_side),
                            static_cast<uint32_t>(segment.rows * video.patch_side)};
    fault_t fault;
    size_t frames = 0;
    times = 0;
    uform_status_t status =
        codecs_.decode_video(file, limits_, sampling, size, reinterpret_cast<uint8_t *>(scratch), frames, fault);
    if (!status && !frames) status = refuse(fault, uform_malformed_k, "no frame could be decoded");
    if (status) return refuse_item(segment.item, fault);
    times = (frames + video.frames - 1) / video.frames;
    notes[segment.item].extent = frames;
    notes[segment.item].truncated &= frames == most_frames;
    return uform_success_k;
}

void video_files_t::patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                            size_t stride) const noexcept {
    patch_cutter_t cutter;
    cutter.rgb = reinterpret_cast<uint8_t const *>(scratch);
    cutter.pictures = notes[segment.item].extent;
    cutter.rows = segment.rows;
    cutter.columns = segment.columns;
    cutter.side = config_.video.patch_side;
    cutter.frames = config_.video.frames;
    cutter.cut(first, count, out, stride);
}

} // namespace uform
