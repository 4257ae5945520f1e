#include "media/clips/converter.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "media/fault.h"

extern "C" {
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
}

namespace uform {
namespace {

/** Rows of the resized picture start at multiples of this, and may be written this far behind their end. */
constexpr size_t row_bytes_k = 64;
constexpr double most_pixel_aspect_k = 16;
/** Videos that tell no matrix: as for standard definition below this height, as for high definition from it on. */
constexpr int high_definition_k = 720;

int32_t const *display_matrix(AVStream const &track) noexcept {
#if LIBAVCODEC_VERSION_INT >= AV_VERSION_INT(60, 31, 102)
    AVPacketSideData const *const found = av_packet_side_data_get(
        track.codecpar->coded_side_data, track.codecpar->nb_coded_side_data, AV_PKT_DATA_DISPLAYMATRIX);
    if (!found || found->size < 9 * sizeof(int32_t)) return nullptr;
    return reinterpret_cast<int32_t const *>(found->data);
#else
    size_t length = 0;
    uint8_t const *const found = av_stream_get_side_data(&track, AV_PKT_DATA_DISPLAYMATRIX, &length);
    return found && length >= 9 * sizeof(int32_t) ? reinterpret_cast<int32_t const *>(found) : nullptr;
#endif
}

/** The format without the range that its name tells, and whether that is the full one. */
AVPixelFormat plain_format(AVPixelFormat format, bool &full_range) noexcept {
    AVPixelFormat plain = format;
    switch (format) {
    case AV_PIX_FMT_YUVJ420P: plain = AV_PIX_FMT_YUV420P; break;
    case AV_PIX_FMT_YUVJ422P: plain = AV_PIX_FMT_YUV422P; break;
    case AV_PIX_FMT_YUVJ444P: plain = AV_PIX_FMT_YUV444P; break;
    case AV_PIX_FMT_YUVJ440P: plain = AV_PIX_FMT_YUV440P; break;
    default: return format;
    }
    full_range = true;
    return plain;
}

int matrix_of(AVFrame const &frame) noexcept {
    switch (frame.colorspace) {
    case AVCOL_SPC_BT709: return SWS_CS_ITU709;
    case AVCOL_SPC_FCC: return SWS_CS_FCC;
    case AVCOL_SPC_BT470BG:
    case AVCOL_SPC_SMPTE170M: return SWS_CS_ITU601;
    case AVCOL_SPC_SMPTE240M: return SWS_CS_SMPTE240M;
    case AVCOL_SPC_BT2020_NCL:
    case AVCOL_SPC_BT2020_CL: return SWS_CS_BT2020;
    default: return frame.height < high_definition_k ? SWS_CS_ITU601 : SWS_CS_ITU709;
    }
}

} // namespace

orientation_t orientation(AVStream const &track) noexcept {
    int32_t const *const matrix = display_matrix(track);
    if (!matrix) return {};
    // A stored (x, y) is viewed at (m[0] x + m[3] y, m[1] x + m[4] y), shifted into view.
    auto const magnitude = [&](int index) { return std::abs(int64_t(matrix[index])); };
    if (magnitude(1) + magnitude(3) > magnitude(0) + magnitude(4)) return {true, matrix[3] < 0, matrix[1] < 0};
    return {false, matrix[0] < 0, matrix[4] < 0};
}

picture_t viewed_size(AVStream const &track) noexcept {
    AVRational const told =
        track.sample_aspect_ratio.num > 0 ? track.sample_aspect_ratio : track.codecpar->sample_aspect_ratio;
    double const aspect = told.num > 0 && told.den > 0 ? av_q2d(told) : 1;
    double width = track.codecpar->width, height = track.codecpar->height;
    if (aspect > 1 && aspect <= most_pixel_aspect_k) width *= aspect;
    if (aspect < 1 && aspect >= 1 / most_pixel_aspect_k) height /= aspect;
    if (orientation(track).transposed) std::swap(width, height);
    return {uint32_t(std::lround(width)), uint32_t(std::lround(height))};
}

uform_status_t converter_t::prepare(source_t const &source, fault_t &fault) noexcept {
    int const width = int(orientation_.transposed ? size_.height : size_.width);
    int const height = int(orientation_.transposed ? size_.width : size_.height);
    if (!upright_) {
        stride_ = (size_t(width) * 3 + row_bytes_k - 1) / row_bytes_k * row_bytes_k;
        upright_ = static_cast<uint8_t *>(av_malloc(stride_ * size_t(height) + row_bytes_k));
        if (!upright_) return refuse(fault, uform_out_of_memory_k, "no memory for a frame");
    }
    // The triangle filter, as wide as shrinking takes; chroma between its samples, not the nearest of them.
    constexpr int flags_k = SWS_BILINEAR | SWS_ACCURATE_RND | SWS_FULL_CHR_H_INT | SWS_FULL_CHR_H_INP;
    AVPixelFormat const format = AVPixelFormat(source.format);
    context_.reset(sws_getContext(source.width, source.height, format, width, height, AV_PIX_FMT_RGB24, flags_k,
                                  nullptr, nullptr, nullptr));
    if (!context_)
        return refuse(fault, uform_malformed_k, "frames of %d x %d as %s cannot be resized", source.width,
                      source.height, av_get_pix_fmt_name(format) ? av_get_pix_fmt_name(format) : "an unknown format");
    AVPixFmtDescriptor const *const descriptor = av_pix_fmt_desc_get(format);
    if (!descriptor || (descriptor->flags & AV_PIX_FMT_FLAG_RGB)) return uform_success_k;
    int const *const matrix = sws_getCoefficients(source.matrix);
    if (sws_setColorspaceDetails(context_.get(), matrix, source.full_range, sws_getCoefficients(SWS_CS_DEFAULT), 1, 0,
                                 1 << 16, 1 << 16) < 0)
        return refuse(fault, uform_malformed_k, "the colours of %s are not known", av_get_pix_fmt_name(format));
    return uform_success_k;
}

uform_status_t converter_t::convert(AVFrame const &frame, uint8_t *rgb, fault_t &fault) noexcept {
    bool full_range = frame.color_range == AVCOL_RANGE_JPEG;
    AVPixelFormat const format = plain_format(AVPixelFormat(frame.format), full_range);
    source_t const source {frame.width, frame.height, format, matrix_of(frame), full_range};
    if (!context_ || source != source_) {
        source_ = source;
        if (uform_status_t const status = prepare(source, fault)) return context_.reset(), status;
    }
    uint8_t *const planes[4] = {upright_};
    int const strides[4] = {int(stride_)};
    int const rows = sws_scale(context_.get(), frame.data, frame.linesize, 0, frame.height, planes, strides);
    if (rows < 0) return refuse(fault, uform_malformed_k, "a frame cannot be resized");

    size_t const width = size_.width, height = size_.height;
    for (size_t y = 0; y != height; ++y) {
        size_t const v = orientation_.mirrored_y ? height - 1 - y : y;
        uint8_t *const row = rgb + y * width * 3;
        if (!orientation_.transposed && !orientation_.mirrored_x) {
            std::memcpy(row, upright_ + v * stride_, width * 3);
            continue;
        }
        for (size_t x = 0; x != width; ++x) {
            size_t const u = orientation_.mirrored_x ? width - 1 - x : x;
            std::memcpy(row + 3 * x, upright_ + (orientation_.transposed ? u * stride_ + 3 * v : v * stride_ + 3 * u),
                        3);
        }
    }
    return uform_success_k;
}

} // namespace uform
