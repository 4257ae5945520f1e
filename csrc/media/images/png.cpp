#include "media/images/png.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>

#include <libdeflate.h>

#include "media/images/bounds.h"
#include "media/images/png_colours.h"
#include "media/images/png_file.h"
#include "media/images/png_unfilter.h"
#include "media/resize.h"

namespace uform {
namespace {

struct freed_t {
    void operator()(void *memory) const noexcept { std::free(memory); }
    void operator()(libdeflate_decompressor *decompressor) const noexcept {
        libdeflate_free_decompressor(decompressor);
    }
};
using memory_t = std::unique_ptr<uint8_t, freed_t>;
using decompressor_t = std::unique_ptr<libdeflate_decompressor, freed_t>;

/** Deflate makes at most so many bytes of one. */
constexpr uint64_t most_inflation_k = 1032;

/** Every `across`th pixel of every `down`th row, which come together. */
struct pass_t {
    uint32_t left, top, across, down;

    constexpr uint32_t columns(uint32_t width) const noexcept { return (width + across - 1 - left) / across; }
    constexpr uint32_t rows(uint32_t height) const noexcept { return (height + down - 1 - top) / down; }
};

constexpr pass_t whole_k[1] = {{0, 0, 1, 1}};
constexpr pass_t interlaced_k[7] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                    {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};

class png_decoder_t {
  public:
    png_decoder_t(png_file_t const &png, limits_t const &limits, fault_t &fault) noexcept
        : png_(png), limits_(limits), fault_(fault), colours_(png) {
        if (png.interlaced) passes_ = interlaced_k, passes_count_ = std::size(interlaced_k);
        for (size_t index = 0; index != passes_count_; ++index) {
            starts_[index] = inflated_bytes_;
            uint64_t const columns = passes_[index].columns(png.frame.width);
            // A pass without columns has no rows either.
            if (columns) inflated_bytes_ += passes_[index].rows(png.frame.height) * line_bytes(columns);
        }
    }

    uform_status_t decode(picture_t size, uint8_t *rgb) noexcept {
        if (uform_status_t const status = allocate(size)) return status;
        if (uform_status_t const status = inflate()) return status;
        resizer_t resizer;
        if (!resizer.open(png_.canvas, size, png_.orientation, rgb)) return refuse_memory();
        for (uint32_t row = 0; row != png_.canvas.height; ++row) {
            uint8_t const *pixels = nullptr;
            if (uform_status_t const status = draw(row, pixels)) return status;
            resizer.take(pixels);
        }
        return uform_success_k;
    }

  private:
    /** Of a row, with the byte that tells its filter. */
    uint64_t line_bytes(uint64_t columns) const noexcept { return 1 + png_.samples.row_bytes(columns); }

    uform_status_t refuse_memory() noexcept {
        return refuse(fault_, uform_out_of_memory_k, "no memory to decode a picture");
    }

    uform_status_t allocate(picture_t size) noexcept {
        if (inflated_bytes_ > most_inflation_k * png_.compressed_bytes)
            return refuse(fault_, uform_malformed_k, "a PNG file with less data than its picture takes");
        uint64_t const zeros_bytes = png_.samples.row_bytes(png_.frame.width) + png_padding_k;
        uint64_t const frame_row_bytes = uint64_t(png_.frame.width) * 3;
        uint64_t const canvas_row_bytes = uint64_t(png_.canvas.width) * 3;
        uint64_t const bytes = inflated_bytes_ + png_padding_k + zeros_bytes + frame_row_bytes + canvas_row_bytes;
        uint64_t const joined = png_.pieces == 1 ? 0 : png_.compressed_bytes;
        uint64_t const resized = resizer_t::bytes(png_.canvas, size, png_.orientation);
        if (uform_status_t const status = check_bytes(bytes + joined + resized, limits_, fault_)) return status;

        memory_.reset(static_cast<uint8_t *>(std::malloc(bytes)));
        if (!memory_) return refuse_memory();
        inflated_ = memory_.get();
        zeros_ = inflated_ + inflated_bytes_ + png_padding_k;
        frame_row_ = zeros_ + zeros_bytes;
        canvas_row_ = frame_row_ + frame_row_bytes;
        std::memset(zeros_ - png_padding_k, 0, png_padding_k + zeros_bytes);
        return uform_success_k;
    }

    uform_status_t inflate() noexcept {
        memory_t room;
        if (png_.pieces > 1) {
            room.reset(static_cast<uint8_t *>(std::malloc(std::max<size_t>(png_.compressed_bytes, 1))));
            if (!room) return refuse_memory();
        }
        png_bytes_t compressed;
        if (uform_status_t const status = join_png_data(png_, room.get(), compressed, fault_)) return status;
        decompressor_t const decompressor(libdeflate_alloc_decompressor());
        if (!decompressor) return refuse_memory();
        size_t inflated_bytes = 0;
        libdeflate_result const result = libdeflate_zlib_decompress(
            decompressor.get(), compressed.data, compressed.length, inflated_, inflated_bytes_, &inflated_bytes);
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE)
            return refuse(fault_, uform_malformed_k, "a PNG file with more data than its picture takes");
        if (result != LIBDEFLATE_SUCCESS)
            return refuse(fault_, uform_malformed_k, "a PNG file whose compressed data is damaged");
        if (inflated_bytes != inflated_bytes_)
            return refuse(fault_, uform_malformed_k, "a PNG file with less data than its picture takes");
        return uform_success_k;
    }

    /** The canvas' next row, in memory that is good until the one after it is drawn. */
    uform_status_t draw(uint32_t row, uint8_t const *&pixels) noexcept {
        pixels = canvas_row_;
        if (row == 0 || row == png_.frame.top + png_.frame.height)
            std::memset(canvas_row_, 255, size_t(png_.canvas.width) * 3);
        if (row < png_.frame.top || row - png_.frame.top >= png_.frame.height) return uform_success_k;
        uint32_t const frame_row = row - png_.frame.top;
        for (size_t index = 0; index != passes_count_; ++index) {
            pass_t const &pass = passes_[index];
            size_t const columns = pass.columns(png_.frame.width);
            if (!columns || frame_row % pass.down != pass.top) continue;
            uint8_t const *samples = nullptr;
            if (uform_status_t const status = unfilter(index, frame_row / pass.down, columns, samples)) return status;
            if (columns == png_.canvas.width && colours_.copies()) {
                pixels = samples;
                continue;
            }
            uint8_t *const first = canvas_row_ + (size_t(png_.frame.left) + pass.left) * 3;
            if (pass.across == 1) {
                colours_.convert(samples, columns, first);
                continue;
            }
            colours_.convert(samples, columns, frame_row_);
            for (size_t column = 0; column != columns; ++column)
                std::memcpy(first + column * pass.across * 3, frame_row_ + column * 3, 3);
        }
        return uform_success_k;
    }

    /** Rows of a pass come in order: the one above was unfiltered before, and this one perhaps with it. */
    uform_status_t unfilter(size_t index, size_t row, size_t columns, uint8_t const *&samples) noexcept {
        size_t const count = png_.samples.row_bytes(columns), stride = count + 1;
        size_t const pixel_bytes = std::max<size_t>(png_.samples.channels() * png_.samples.depth / 8, 1);
        uint8_t *const line = inflated_ + starts_[index] + row * stride;
        samples = line + 1;
        if (row < unfiltered_[index]) return uform_success_k;
        uint8_t const *const above = row ? line - stride + 1 : zeros_;
        bool const are_there = passes_[index].rows(png_.frame.height) - row >= png_rows_together_k;
        if (are_there && unfilter_png_together(line, stride, above, pixel_bytes)) {
            unfiltered_[index] = row + png_rows_together_k;
            return uform_success_k;
        }
        if (!unfilter_png(line[0], line + 1, above, count, pixel_bytes))
            return refuse(fault_, uform_malformed_k, "a PNG file with a filter of number %u", line[0]);
        unfiltered_[index] = row + 1;
        return uform_success_k;
    }

    png_file_t const &png_;
    limits_t const &limits_;
    fault_t &fault_;
    png_colours_t const colours_;
    pass_t const *passes_ = whole_k;
    size_t passes_count_ = 1;
    uint64_t starts_[std::size(interlaced_k)] = {};     /**< Where each pass's rows start. */
    uint64_t unfiltered_[std::size(interlaced_k)] = {}; /**< Rows of each pass. */
    uint64_t inflated_bytes_ = 0;

    memory_t memory_;
    uint8_t *inflated_ = nullptr;
    uint8_t *zeros_ = nullptr; /**< Above the first row. */
    uint8_t *frame_row_ = nullptr;
    uint8_t *canvas_row_ = nullptr;
};

} // namespace

uform_status_t probe_png(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept {
    png_file_t png;
    if (uform_status_t const status = read_png(file, limits, png, fault)) return status;
    picture = turned(png.canvas, png.orientation);
    return uform_success_k;
}

uform_status_t decode_png(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept {
    png_file_t png;
    if (uform_status_t const status = read_png(file, limits, png, fault)) return status;
    return png_decoder_t(png, limits, fault).decode(size, rgb);
}

} // namespace uform
