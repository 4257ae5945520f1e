/** Decoded frames as a viewer would show them: upright, RGB of full range, resized with antialiasing. */
#pragma once
#include <memory>

extern "C" {
#include <libavformat/avformat.h>
#include <libswscale/swscale.h>
}

#include "media/codecs.h"

namespace uform {

/** How stored pixels become viewed ones: rows and columns swapped first, then mirrored. */
struct orientation_t {
    bool transposed = false, mirrored_x = false, mirrored_y = false;
};

/** From the track's display matrix, to the nearest quarter turn. */
orientation_t orientation(AVStream const &track) noexcept;

/** The viewed size of a track: upright, of square pixels. */
picture_t viewed_size(AVStream const &track) noexcept;

class converter_t {
  public:
    converter_t(picture_t size, orientation_t orientation) noexcept : size_(size), orientation_(orientation) {}
    ~converter_t() noexcept { av_free(upright_); }
    converter_t(converter_t const &) = delete;
    converter_t &operator=(converter_t const &) = delete;

    /** @param[out] rgb [height, width, 3] */
    uform_status_t convert(AVFrame const &frame, uint8_t *rgb, fault_t &fault) noexcept;

  private:
    struct release_t {
        void operator()(SwsContext *context) const noexcept { sws_freeContext(context); }
    };
    struct source_t {
        int width = 0, height = 0, format = -1, matrix = 0;
        bool full_range = false;
        bool operator==(source_t const &) const noexcept = default;
    };

    uform_status_t prepare(source_t const &source, fault_t &fault) noexcept;

    picture_t size_;
    orientation_t orientation_;
    source_t source_;
    std::unique_ptr<SwsContext, release_t> context_;
    uint8_t *upright_ = nullptr; /**< Resized, not yet turned. */
    size_t stride_ = 0;
};

} // namespace uform
