/**
 *  What libuform asks of the two libraries that hold the decoders. They are loaded by the first call that needs them:
 *  text works on machines that have none of the system libraries behind them, and importing stays cheap.
 *
 *  Every function may run on many threads at once, on different items or the same. Data is untrusted: what is larger
 *  than the limits is refused from its headers, before memory is asked for. A failure fills in the fault: MALFORMED for
 *  what is broken, truncated or over a limit, UNSUPPORTED_LAYOUT for a format that is none of ours, OUT_OF_MEMORY.
 */
#pragma once
#include <cstddef>
#include <cstdint>

#include "uform/types.h"

namespace uform {

/** Why an item cannot be decoded. */
struct fault_t {
    uform_status_t status = uform_success_k;
    char message[256] = {};
};

/** What an item may take at the most. */
struct limits_t {
    uint64_t pixels = uint64_t(1) << 28; /**< Of a picture, or of a frame. */
    uint64_t seconds = 4 * 3600;         /**< Of a clip. */
    uint64_t bytes = uint64_t(1) << 31;  /**< Of memory while it is decoded. */
};

/** A file in memory. */
struct file_t {
    uint8_t const *data = nullptr;
    size_t length = 0;
};

/** Pixels, as a viewer would show them: turned upright, over white. */
struct picture_t {
    uint32_t width = 0;
    uint32_t height = 0;
};

/** JPEG, PNG, WebP. */
struct images_codecs_t {
    /** The picture's size, from its headers. */
    uform_status_t (*probe)(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept;
    /** Decodes and resizes (antialiased) to exactly `size`, into `rgb` [height, width, 3]. */
    uform_status_t (*decode)(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb,
                             fault_t &fault) noexcept;
};

/** Which frames of a video are wanted: the one on show at 0, 1 / rate, 2 / rate, ... seconds from the first one. */
struct sampling_t {
    double rate = 0;        /**< Hz */
    size_t most_frames = 0; /**< Later ones are left out, and counted as truncation. */
};

/** A video, as a viewer would show it. */
struct video_t {
    picture_t picture;
    size_t frames = 0;      /**< Frames that `sampling` picks, an upper bound, at most `most_frames`. */
    bool truncated = false; /**< Whether there are more. */
};

/** A recording. */
struct audio_t {
    size_t samples = 0;     /**< After resampling, an upper bound, at most what was asked for. */
    bool truncated = false; /**< Whether there are more. */
};

/** MP4 and WebM; WAV, FLAC, MP3, Opus. */
struct clips_codecs_t {
    uform_status_t (*probe_video)(file_t file, limits_t const &limits, sampling_t sampling, video_t &video,
                                  fault_t &fault) noexcept;
    /** Decodes the frames that `sampling` picks, resized to `size`, into `rgb` [frames, height, width, 3]. */
    uform_status_t (*decode_video)(file_t file, limits_t const &limits, sampling_t sampling, picture_t size,
                                   uint8_t *rgb, size_t &frames, fault_t &fault) noexcept;
    uform_status_t (*probe_audio)(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples,
                                  audio_t &audio, fault_t &fault) noexcept;
    /** Decodes to the mean of all channels at `rate` Hz, at most `most_samples`, into `samples`. */
    uform_status_t (*decode_audio)(file_t file, limits_t const &limits, uint32_t rate, size_t most_samples,
                                   float *samples, size_t &count, fault_t &fault) noexcept;
    /** Samples in memory from one rate to another, at most `most_samples` of them. */
    uform_status_t (*resample)(float const *from, size_t from_count, uint32_t from_rate, uint32_t rate,
                               size_t most_samples, float *samples, size_t &count, fault_t &fault) noexcept;
};

} // namespace uform

/** The libraries' only exported symbols. */
extern "C" {
UFORM_API uform::images_codecs_t const *uform_images_codecs(void) noexcept;
UFORM_API uform::clips_codecs_t const *uform_clips_codecs(void) noexcept;
}
