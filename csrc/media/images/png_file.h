/**
 *  The chunks of a PNG file (W3C, Portable Network Graphics, third edition). Nothing in it is trusted.
 *  Chunks on colour spaces are passed over: samples are taken for those of a common screen.
 */
#pragma once
#include "media/codecs.h"
#include "media/resize.h"

namespace uform {

enum class png_colour_t : uint8_t { grey_k = 0, rgb_k = 2, palette_k = 3, grey_alpha_k = 4, rgb_alpha_k = 6 };

/** How pixels are coded. */
struct png_samples_t {
    png_colour_t colour = png_colour_t::grey_k;
    uint32_t depth = 8; /**< Bits of a sample. */

    constexpr uint32_t channels() const noexcept {
        switch (colour) {
        case png_colour_t::grey_alpha_k: return 2;
        case png_colour_t::rgb_k: return 3;
        case png_colour_t::rgb_alpha_k: return 4;
        default: return 1;
        }
    }
    constexpr uint64_t row_bytes(uint64_t columns) const noexcept { return (columns * channels() * depth + 7) / 8; }
};

/** Some bytes of the file. */
struct png_bytes_t {
    uint8_t const *data = nullptr;
    size_t length = 0;
};

/** The part of the canvas that is drawn on: all of it, but for some animations. */
struct png_frame_t {
    uint32_t left = 0, top = 0, width = 0, height = 0;
};

/** What is shown: the still picture, or an animation's first frame. */
struct png_file_t {
    picture_t canvas;
    png_samples_t samples;
    bool interlaced = false;
    orientation_t orientation = orientation_t::upright_k;
    png_bytes_t palette;      /**< RGB of each entry. */
    png_bytes_t transparency; /**< Alpha of each entry, or samples of 16 bits of the colour that is transparent. */
    png_frame_t frame;
    png_bytes_t chunks;          /**< From the frame's first chunk of compressed data to the end of its last. */
    size_t pieces = 0;           /**< Chunks of compressed data. */
    size_t compressed_bytes = 0; /**< In all of them. */
};

/** Walks through a file and checks all of it but the compressed data. MALFORMED, UNSUPPORTED_LAYOUT. */
uform_status_t read_png(file_t file, limits_t const &limits, png_file_t &png, fault_t &fault) noexcept;

/**
 *  The frame's compressed data, in one piece, its chunks' checks compared. MALFORMED.
 *  @param[out] room [png.compressed_bytes] where the pieces are joined; not used where there is one piece.
 */
uform_status_t join_png_data(png_file_t const &png, uint8_t *room, png_bytes_t &compressed, fault_t &fault) noexcept;

} // namespace uform
