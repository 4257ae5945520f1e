#include "media/images/png_colours.h"

#include <algorithm>
#include <cstring>

#include "media/images/over_white.h"

namespace uform {
namespace {

constexpr uint8_t white_k = 255;

uint32_t u16(uint8_t const *data) noexcept { return uint32_t(data[0]) << 8 | data[1]; }

/** A level of 16 bits in 8. */
uint8_t narrowed(uint32_t level) noexcept { return uint8_t((level * 255 + 32895) >> 16); }

/** A level of 16 bits over white, in 8. */
uint8_t narrowed_over_white(uint32_t level, uint32_t alpha) noexcept {
    uint64_t const product = uint64_t(0xFFFF - level) * alpha;
    return narrowed(0xFFFF - uint32_t((product + 0x7FFF) / 0xFFFF));
}

struct two_bytes_t {
    static constexpr size_t bytes_k = 2;
    static uint32_t level(uint8_t const *data) noexcept { return u16(data); }
    static uint8_t opaque(uint32_t level) noexcept { return narrowed(level); }
    static uint8_t over_white(uint32_t level, uint32_t alpha) noexcept { return narrowed_over_white(level, alpha); }
};

struct one_byte_t {
    static constexpr size_t bytes_k = 1;
    static uint32_t level(uint8_t const *data) noexcept { return *data; }
    static uint8_t opaque(uint32_t level) noexcept { return uint8_t(level); }
    static uint8_t over_white(uint32_t level, uint32_t alpha) noexcept { return uform::over_white(level, alpha); }
};

/** @tparam colours_ 1 for grey, 3 for RGB; alpha comes after them. */
template <typename sample_type_, size_t colours_>
void convert_alpha(uint8_t const *row, size_t columns, uint8_t *rgb) noexcept {
    constexpr size_t bytes = sample_type_::bytes_k;
    for (size_t column = 0; column != columns; ++column, row += (colours_ + 1) * bytes, rgb += 3) {
        uint32_t const alpha = sample_type_::level(row + colours_ * bytes);
        for (size_t channel = 0; channel != 3; ++channel)
            rgb[channel] = sample_type_::over_white(sample_type_::level(row + channel % colours_ * bytes), alpha);
    }
}

template <typename sample_type_, size_t colours_>
void convert_opaque(uint8_t const *row, size_t columns, uint8_t const *key, uint8_t *rgb) noexcept {
    constexpr size_t bytes = sample_type_::bytes_k, pixel_bytes = colours_ * bytes;
    for (size_t column = 0; column != columns; ++column, row += pixel_bytes, rgb += 3) {
        bool const transparent = key && !std::memcmp(row, key, pixel_bytes);
        for (size_t channel = 0; channel != 3; ++channel) {
            uint8_t const level = sample_type_::opaque(sample_type_::level(row + channel % colours_ * bytes));
            rgb[channel] = transparent ? white_k : level;
        }
    }
}

} // namespace

png_colours_t::png_colours_t(png_file_t const &png) noexcept : samples_(png.samples) {
    png_bytes_t const transparency = png.transparency;
    bool const is_grey = samples_.colour == png_colour_t::grey_k, is_rgb = samples_.colour == png_colour_t::rgb_k;
    listed_ = samples_.colour == png_colour_t::palette_k || (is_grey && samples_.depth <= 8);
    if (listed_ && is_grey) list_greys(transparency);
    else if (listed_) list_palette(png.palette, transparency);
    // Keys have 16 bits for each sample, of which the last ones count.
    else if ((is_grey || is_rgb) && transparency.length == 2 * samples_.channels()) {
        has_key_ = true;
        size_t const bytes = samples_.depth / 8;
        for (size_t channel = 0; channel != samples_.channels(); ++channel)
            std::memcpy(key_ + channel * bytes, transparency.data + 2 * channel + 2 - bytes, bytes);
    }
    copies_ = is_rgb && samples_.depth == 8 && !has_key_;
}

void png_colours_t::list_greys(png_bytes_t transparency) noexcept {
    uint32_t const most = (1u << samples_.depth) - 1;
    for (uint32_t level = 0; level <= most; ++level) std::memset(colours_[level], int(level * 255 / most), 3);
    if (transparency.length == 2) std::memset(colours_[transparency.data[1] & most], white_k, 3);
}

void png_colours_t::list_palette(png_bytes_t palette, png_bytes_t transparency) noexcept {
    std::memcpy(colours_, palette.data, palette.length);
    size_t const entries = std::min(palette.length / 3, transparency.length);
    for (size_t entry = 0; entry != entries; ++entry)
        for (uint8_t &level : colours_[entry]) level = over_white(level, transparency.data[entry]);
}

void png_colours_t::convert(uint8_t const *row, size_t columns, uint8_t *rgb) const noexcept {
    if (listed_) {
        uint32_t const depth = samples_.depth, most = (1u << depth) - 1;
        for (size_t column = 0; column != columns; ++column, rgb += 3) {
            size_t const bit = column * depth;
            std::memcpy(rgb, colours_[row[bit / 8] >> (8 - depth - bit % 8) & most], 3);
        }
        return;
    }
    uint8_t const *const key = has_key_ ? key_ : nullptr;
    bool const narrow = samples_.depth == 8;
    switch (samples_.colour) {
    case png_colour_t::grey_alpha_k:
        return narrow ? convert_alpha<one_byte_t, 1>(row, columns, rgb)
                      : convert_alpha<two_bytes_t, 1>(row, columns, rgb);
    case png_colour_t::rgb_alpha_k:
        return narrow ? over_white(row, columns, rgb) : convert_alpha<two_bytes_t, 3>(row, columns, rgb);
    case png_colour_t::rgb_k:
        return narrow ? convert_opaque<one_byte_t, 3>(row, columns, key, rgb)
                      : convert_opaque<two_bytes_t, 3>(row, columns, key, rgb);
    default: return convert_opaque<two_bytes_t, 1>(row, columns, key, rgb);
    }
}

} // namespace uform
