#include "media/resize.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>

namespace uform {
namespace {

constexpr size_t channels_k = 3;

} // namespace

oriented_rows_t::oriented_rows_t(picture_t target, orientation_t orientation, uint8_t *rgb) noexcept
    : columns_(turned(target, orientation).width) {
    using enum orientation_t;
    ptrdiff_t const pixel = channels_k, line = ptrdiff_t(target.width) * pixel;
    bool const swaps = orientation >= transposed_k;
    bool const from_right = orientation == mirrored_k || orientation == upside_down_k || orientation == turned_left_k ||
                            orientation == transversed_k;
    bool const from_bottom = orientation == upside_down_k || orientation == flipped_k || orientation == transversed_k ||
                             orientation == turned_right_k;
    ptrdiff_t const right = from_right ? -pixel : pixel, down = from_bottom ? -line : line;
    place_ = rgb + (from_right ? line - pixel : 0) + (from_bottom ? line * (ptrdiff_t(target.height) - 1) : 0);
    across_bytes_ = swaps ? down : right;
    down_bytes_ = swaps ? right : down;
}

void oriented_rows_t::write(uint8_t const *row) noexcept {
    uint8_t *to = place_;
    place_ += down_bytes_;
    if (across_bytes_ == ptrdiff_t(channels_k)) {
        std::memcpy(to, row, columns_ * channels_k);
        return;
    }
    for (size_t column = 0; column != columns_; ++column, to += across_bytes_, row += channels_k)
        std::memcpy(to, row, channels_k);
}

resizer_t::~resizer_t() noexcept { std::free(memory_); }

uint64_t resizer_t::bytes(picture_t source, picture_t target, orientation_t orientation) noexcept {
    picture_t const stored = turned(target, orientation);
    uint64_t const row = uint64_t(source.width) * channels_k, line = uint64_t(stored.width) * channels_k;
    return resize_columns_t::bytes({source.width, double(source.width), stored.width}, column_taps_k) +
           resize_sums_t::bytes(row) + 3 * (line + levels_padding_k);
}

bool resizer_t::open(picture_t source, picture_t target, orientation_t orientation, uint8_t *rgb) noexcept {
    return open(source, source.width, source.height, target, orientation, rgb);
}

bool resizer_t::open(picture_t source, double width, double height, picture_t target, orientation_t orientation,
                     uint8_t *rgb) noexcept {
    picture_t const stored = turned(target, orientation);
    resize_axis_t const across(source.width, width, stored.width);
    down_ = resize_axis_t(source.height, height, stored.height);
    row_samples_ = source.width * channels_k, line_samples_ = stored.width * channels_k;
    output_ = oriented_rows_t(target, orientation, rgb);
    copies_ = across.scale == 1 && down_.scale == 1;
    if (copies_) return true;

    memory_ = static_cast<uint8_t *>(std::calloc(bytes(source, target, orientation), 1));
    if (!memory_) return false;
    columns_.open(across, column_taps_k, memory_);
    uint8_t *const sums = memory_ + resize_columns_t::bytes(across, column_taps_k);
    if (reduces()) sums_.open(down_, row_samples_, sums);
    else row_ = reinterpret_cast<uint16_t *>(sums);
    lines_[0] = sums + resize_sums_t::bytes(row_samples_);
    lines_[1] = lines_[0] + line_samples_ + levels_padding_k;
    between_ = lines_[1] + line_samples_ + levels_padding_k;
    return true;
}

void resizer_t::take(uint8_t const *row) noexcept {
    if (copies_) output_.write(row);
    else if (reduces()) reduce(row);
    else enlarge(row);
}

void resizer_t::reduce(uint8_t const *row) noexcept {
    sums_.take(row);
    while (uint16_t const *const sums = sums_.finished()) {
        columns_.resize(sums, lines_[0]);
        output_.write(lines_[0]);
        sums_.next();
    }
}

void resizer_t::enlarge(uint8_t const *row) noexcept {
    for (size_t index = 0; index != row_samples_; ++index) row_[index] = uint16_t(row[index] << sum_bits_k);
    columns_.resize(row_, lines_[taken_ % 2]);
    for (; written_ != down_.target; ++written_) {
        resize_span_t const span(down_, written_);
        if (span.last > taken_ + 1) break;
        // A filter of two pixels' width sees this row and the one before; or this one alone, with a weight of one.
        uint8_t const *const last = lines_[taken_ % 2], *const before = lines_[(taken_ + 1) % 2];
        constexpr unsigned bits = 16, half = 1u << (bits - 1);
        unsigned const weight = unsigned(span.weight(down_, taken_) * (1u << bits) + 0.5), rest = (1u << bits) - weight;
        for (size_t index = 0; index != line_samples_; ++index)
            between_[index] = uint8_t((last[index] * weight + before[index] * rest + half) >> bits);
        output_.write(between_);
    }
    ++taken_;
}

} // namespace uform
