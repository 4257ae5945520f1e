#include "media/images/webp.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <webp/decode.h>
#include <webp/demux.h>

#include "media/images/bounds.h"
#include "media/images/exif.h"
#include "media/images/over_white.h"
#include "media/images/yuv.h"
#include "media/resize.h"

namespace uform {
namespace {

struct freed_t {
    void operator()(uint8_t *memory) const noexcept { std::free(memory); }
    void operator()(WebPDemuxer *demuxer) const noexcept { WebPDemuxDelete(demuxer); }
};
using memory_t = std::unique_ptr<uint8_t, freed_t>;
using demuxer_t = std::unique_ptr<WebPDemuxer, freed_t>;

/** As WebPGetFeatures numbers them. */
constexpr int lossy_format_k = 1, lossless_format_k = 2;

class webp_t {
  public:
    webp_t(limits_t const &limits, fault_t &fault) noexcept : limits_(limits), fault_(fault) {}
    webp_t(webp_t const &) = delete;
    webp_t &operator=(webp_t const &) = delete;
    ~webp_t() noexcept { WebPDemuxReleaseIterator(&frame_); }

    uform_status_t open(file_t file) noexcept {
        WebPData const data = {file.data, file.length};
        demuxer_.reset(WebPDemux(&data));
        if (!demuxer_ || !WebPDemuxGetFrame(demuxer_.get(), 1, &frame_))
            return refuse(fault_, uform_malformed_k, "a WebP file that is cut off or damaged");
        canvas_.width = WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_WIDTH);
        canvas_.height = WebPDemuxGetI(demuxer_.get(), WEBP_FF_CANVAS_HEIGHT);
        return check_pixels(canvas_.width, canvas_.height, limits_, fault_);
    }

    picture_t canvas() const noexcept { return canvas_; }

    orientation_t orientation() const noexcept {
        orientation_t orientation = orientation_t::upright_k;
        WebPChunkIterator chunk = {};
        if (WebPDemuxGetChunk(demuxer_.get(), "EXIF", 1, &chunk))
            orientation = exif_orientation(chunk.chunk.bytes, chunk.chunk.size);
        WebPDemuxReleaseChunkIterator(&chunk);
        return orientation;
    }

    uform_status_t decode(picture_t size, uint8_t *rgb) noexcept {
        WebPDecoderConfig config;
        if (!WebPInitDecoderConfig(&config))
            return refuse(fault_, uform_internal_k, "libwebp is not of the version that it was built for");
        VP8StatusCode const read = WebPGetFeatures(frame_.fragment.bytes, frame_.fragment.size, &config.input);
        if (read != VP8_STATUS_OK) return refuse_code(read);
        uint64_t const columns = uint64_t(config.input.width), rows = uint64_t(config.input.height);
        if (columns != uint64_t(frame_.width) || rows != uint64_t(frame_.height))
            return refuse(fault_, uform_malformed_k, "a WebP file whose picture has another size than its frame");

        bool const covers_canvas = columns == canvas_.width && rows == canvas_.height;
        if (config.input.format == lossy_format_k && !config.input.has_alpha && covers_canvas) {
            yuv_picture_t const planes = {canvas_};
            if (planes.covers(turned(size, orientation()))) return decode_planes(config, planes, size, rgb);
        }

        // Lossless pictures are whole in memory twice, as are the alphas of others.
        size_t const channels = config.input.has_alpha ? 4 : 3, row_bytes = columns * channels;
        uint64_t const pixel_bytes = channels + (config.input.format == lossless_format_k ? 4
                                                 : config.input.has_alpha                 ? 2
                                                                                          : 0);
        uint64_t const line_bytes = uint64_t(canvas_.width) * 3;
        uint64_t const bytes = columns * rows * pixel_bytes + line_bytes;
        uint64_t const resized = resizer_t::bytes(canvas_, size, orientation());
        if (uform_status_t const status = check_bytes(bytes + resized, limits_, fault_)) return status;
        memory_t const memory(static_cast<uint8_t *>(std::malloc(row_bytes * rows + line_bytes)));
        resizer_t resizer;
        if (!memory || !resizer.open(canvas_, size, orientation(), rgb)) return refuse_code(VP8_STATUS_OUT_OF_MEMORY);

        config.output.colorspace = config.input.has_alpha ? MODE_RGBA : MODE_RGB;
        config.output.is_external_memory = 1;
        config.output.u.RGBA = {memory.get(), int(row_bytes), row_bytes * rows};
        VP8StatusCode const decoded = WebPDecode(frame_.fragment.bytes, frame_.fragment.size, &config);
        if (decoded != VP8_STATUS_OK) return refuse_code(decoded);
        draw(memory.get(), channels, memory.get() + row_bytes * rows, resizer);
        return uform_success_k;
    }

  private:
    uform_status_t refuse_code(VP8StatusCode code) noexcept {
        if (code == VP8_STATUS_OUT_OF_MEMORY)
            return refuse(fault_, uform_out_of_memory_k, "no memory to decode a picture");
        return refuse(fault_, uform_malformed_k, "a WebP file with a picture that is cut off or damaged");
    }

    /** What is reduced to less than half is not turned into RGB before: it would be most of the work after decoding. */
    uform_status_t decode_planes(WebPDecoderConfig &config, yuv_picture_t planes, picture_t size,
                                 uint8_t *rgb) noexcept {
        uint64_t const bytes = planes.bytes() + reduce_yuv_bytes(planes, size, orientation());
        if (uform_status_t const status = check_bytes(bytes, limits_, fault_)) return status;
        memory_t const memory(static_cast<uint8_t *>(std::malloc(planes.bytes())));
        if (!memory) return refuse_code(VP8_STATUS_OUT_OF_MEMORY);

        size_t const y_bytes = size_t(planes.columns(0)) * planes.rows(0);
        size_t const colour_bytes = size_t(planes.columns(1)) * planes.rows(1);
        WebPYUVABuffer &output = config.output.u.YUVA;
        output.y = memory.get(), output.u = output.y + y_bytes, output.v = output.u + colour_bytes;
        output.y_stride = int(planes.columns(0)), output.u_stride = output.v_stride = int(planes.columns(1));
        output.y_size = y_bytes, output.u_size = output.v_size = colour_bytes;
        config.output.colorspace = MODE_YUV;
        config.output.is_external_memory = 1;
        VP8StatusCode const decoded = WebPDecode(frame_.fragment.bytes, frame_.fragment.size, &config);
        if (decoded != VP8_STATUS_OK) return refuse_code(decoded);
        planes.planes[0] = output.y, planes.planes[1] = output.u, planes.planes[2] = output.v;
        return reduce_yuv(planes, size, orientation(), rgb) ? uform_success_k : refuse_code(VP8_STATUS_OUT_OF_MEMORY);
    }

    /** Puts the frame on the canvas, `line` [canvas columns, 3] by line. */
    void draw(uint8_t const *pixels, size_t channels, uint8_t *line, resizer_t &resizer) const noexcept {
        std::memset(line, 255, size_t(canvas_.width) * 3);
        size_t const columns = size_t(frame_.width), row_bytes = columns * channels;
        uint32_t const top = uint32_t(frame_.y_offset), end = top + uint32_t(frame_.height);
        for (uint32_t row = 0; row != canvas_.height; ++row) {
            if (row == end) std::memset(line, 255, size_t(canvas_.width) * 3);
            if (row >= top && row < end) {
                uint8_t const *const from = pixels + (row - top) * row_bytes;
                uint8_t *const to = line + size_t(frame_.x_offset) * 3;
                if (channels == 4) over_white(from, columns, to);
                else std::memcpy(to, from, row_bytes);
            }
            resizer.take(line);
        }
    }

    limits_t const &limits_;
    fault_t &fault_;
    demuxer_t demuxer_;
    WebPIterator frame_ = {};
    picture_t canvas_;
};

} // namespace

uform_status_t probe_webp(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept {
    webp_t webp(limits, fault);
    if (uform_status_t const status = webp.open(file)) return status;
    picture = turned(webp.canvas(), webp.orientation());
    return uform_success_k;
}

uform_status_t decode_webp(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept {
    webp_t webp(limits, fault);
    if (uform_status_t const status = webp.open(file)) return status;
    return webp.decode(size, rgb);
}

} // namespace uform
