#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace uform {
namespace {

constexpr size_t channels_k = 3;

/** One, as a weight over rows in sums of 16 and of 32 bits, and as one over columns. */
constexpr double row_one_k = 1 << 16, wide_row_one_k = 1 << 24, column_one_k = 1 << column_weight_bits_k;

/** Weights this close to zero are left out, so that a row of the source never belongs to three of the target. */
constexpr double negligible_k = 1e-6;

resize_rows_t const &fastest_loops() noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return resize_rows_haswell;
#endif
    return resize_rows_serial;
}

} // namespace

resizer_t::span_t::span_t(axis_t const &axis, uint32_t pixel) noexcept : center((pixel + 0.5) * axis.scale) {
    double const reach = axis.support - negligible_k;
    first = uint32_t(std::max(0.0, std::ceil(center - reach - 0.5)));
    last = uint32_t(std::min(double(axis.source), std::floor(center + reach - 0.5) + 1));
    double sum = 0;
    for (uint32_t index = first; index != last; ++index) sum += 1 - std::fabs(index + 0.5 - center) / axis.support;
    norm = 1 / sum;
}

double resizer_t::span_t::weight(axis_t const &axis, uint32_t pixel) const noexcept {
    return (1 - std::fabs(pixel + 0.5 - center) / axis.support) * norm;
}

uint32_t resizer_t::span_t::next_weight(axis_t const &axis, uint32_t pixel, double one) noexcept {
    double const wanted = weight(axis, pixel) * one + carry, rounded = std::max(std::floor(wanted + 0.5), 0.0);
    carry = wanted - rounded;
    return uint32_t(rounded);
}

resizer_t::~resizer_t() noexcept { std::free(memory_); }

/** A filter of width 2 s sees at most 2 s + 1 pixels. */
size_t resizer_t::pixels_of_filter(axis_t const &axis) noexcept {
    return std::min(size_t(2 * axis.support) + 1, size_t(axis.source));
}

size_t resizer_t::taps(axis_t const &across) noexcept {
    return (pixels_of_filter(across) + column_taps_k - 1) / column_taps_k * column_taps_k;
}

uint64_t resizer_t::bytes(picture_t source, picture_t target, orientation_t orientation) noexcept {
    picture_t const stored = turned(target, orientation);
    double const scale = double(source.width) / stored.width;
    axis_t const across = {source.width, stored.width, scale, std::max(scale, 1.0)};
    uint64_t const sums = 2 * (sizeof(uint32_t) + sizeof(uint16_t)) * (source.width * channels_k + sums_padding_k);
    uint64_t const lines = 3 * (stored.width * channels_k + levels_padding_k);
    return sums + lines + (sizeof(uint32_t) + taps(across) * sizeof(int16_t)) * stored.width;
}

bool resizer_t::open(picture_t source, picture_t target, orientation_t orientation, uint8_t *rgb) noexcept {
    return open(source, source.width, source.height, target, orientation, rgb);
}

bool resizer_t::open(picture_t source, double width, double height, picture_t target, orientation_t orientation,
                     uint8_t *rgb) noexcept {
    picture_t const stored = turned(target, orientation);
    across_ = {source.width, stored.width, width / stored.width, std::max(width / stored.width, 1.0)};
    down_ = {source.height, stored.height, height / stored.height, std::max(height / stored.height, 1.0)};
    aim(rgb, target, orientation);
    loops_ = &fastest_loops();
    copies_ = across_.scale == 1 && down_.scale == 1;
    if (copies_) return true;

    uint64_t const size = bytes(source, target, orientation);
    memory_ = static_cast<uint8_t *>(std::calloc(size, 1));
    if (!memory_) return false;
    size_t const sums = source.width * channels_k + sums_padding_k, line = stored.width * channels_k + levels_padding_k;
    firsts_ = reinterpret_cast<uint32_t *>(memory_);
    wide_sums_[0] = firsts_ + stored.width, wide_sums_[1] = wide_sums_[0] + sums;
    sums_[0] = reinterpret_cast<uint16_t *>(wide_sums_[1] + sums), sums_[1] = sums_[0] + sums;
    weights_ = reinterpret_cast<int16_t *>(sums_[1] + sums);
    lines_[0] = reinterpret_cast<uint8_t *>(weights_ + taps(across_) * stored.width);
    lines_[1] = lines_[0] + line, between_ = lines_[1] + line;
    list_columns();
    start_span(0);
    if (stored.height > 1) start_span(1);
    return true;
}

void resizer_t::aim(uint8_t *rgb, picture_t target, orientation_t orientation) noexcept {
    using enum orientation_t;
    ptrdiff_t const pixel = channels_k, line = ptrdiff_t(target.width) * pixel;
    bool const swaps = orientation >= transposed_k;
    bool const from_right = orientation == mirrored_k || orientation == upside_down_k || orientation == turned_left_k ||
                            orientation == transversed_k;
    bool const from_bottom = orientation == upside_down_k || orientation == flipped_k || orientation == transversed_k ||
                             orientation == turned_right_k;
    ptrdiff_t const right = from_right ? -pixel : pixel, down = from_bottom ? -line : line;
    output_ = rgb + (from_right ? line - pixel : 0) + (from_bottom ? line * (ptrdiff_t(target.height) - 1) : 0);
    across_bytes_ = swaps ? down : right;
    down_bytes_ = swaps ? right : down;
}

void resizer_t::list_columns() noexcept {
    size_t const pixels = pixels_of_filter(across_), count = taps(across_);
    int16_t *weights = weights_;
    for (uint32_t column = 0; column != across_.target; ++column, weights += count) {
        span_t span(across_, column);
        uint32_t const first = std::min(span.first, uint32_t(across_.source - pixels));
        firsts_[column] = first;
        for (uint32_t pixel = span.first; pixel != span.last; ++pixel)
            weights[pixel - first] = int16_t(span.next_weight(across_, pixel, column_one_k));
    }
}

void resizer_t::take(uint8_t const *row) noexcept {
    if (copies_) write(row);
    else if (reduces()) reduce(row);
    else enlarge(row);
    ++taken_;
}

/** What is cut of each product is half of 1/256 on average. */
void resizer_t::start_span(uint32_t row) noexcept {
    size_t const count = across_.source * channels_k;
    span_t &span = spans_[row % 2] = span_t(down_, row);
    if (is_wide()) std::fill_n(wide_sums_[row % 2], count, 0u);
    else std::fill_n(sums_[row % 2], count, uint16_t(span.pixels() / 2));
}

void resizer_t::reduce(uint8_t const *row) noexcept {
    if (is_wide()) add_wide(row);
    else add(row);
    while (written_ != down_.target && spans_[written_ % 2].last == taken_ + 1) {
        size_t const slot = written_ % 2;
        if (is_wide())
            for (size_t index = 0; index != across_.source * channels_k; ++index)
                sums_[slot][index] = uint16_t(wide_sums_[slot][index] >> 16);
        resize_columns(sums_[slot], lines_[0]);
        write(lines_[0]);
        if (written_ + 1 < down_.target) start_span(written_ + 1);
    }
}

void resizer_t::add(uint8_t const *row) noexcept {
    size_t const count = across_.source * channels_k;
    bool const covered[2] = {spans_[0].covers(taken_), spans_[1].covers(taken_)};
    uint16_t weights[2] = {};
    for (size_t slot = 0; slot != 2; ++slot)
        if (covered[slot])
            // A single row's weight of one is a little less here, and is rounded back later.
            weights[slot] = uint16_t(std::min(spans_[slot].next_weight(down_, taken_, row_one_k), 0xFFFFu));
    if (covered[0] && covered[1]) loops_->add_twice(row, count, weights[0], sums_[0], weights[1], sums_[1]);
    else if (covered[0]) loops_->add(row, count, weights[0], sums_[0]);
    else if (covered[1]) loops_->add(row, count, weights[1], sums_[1]);
}

void resizer_t::add_wide(uint8_t const *row) noexcept {
    for (size_t slot = 0; slot != 2; ++slot) {
        if (!spans_[slot].covers(taken_)) continue;
        uint32_t const weight = spans_[slot].next_weight(down_, taken_, wide_row_one_k);
        uint32_t *const sums = wide_sums_[slot];
        for (size_t index = 0; index != across_.source * channels_k; ++index) sums[index] += row[index] * weight;
    }
}

void resizer_t::enlarge(uint8_t const *row) noexcept {
    size_t const count = across_.source * channels_k;
    for (size_t index = 0; index != count; ++index) sums_[0][index] = uint16_t(row[index] << sum_bits_k);
    resize_columns(sums_[0], lines_[taken_ % 2]);
    for (; written_ != down_.target; write(between_)) {
        span_t const span(down_, written_);
        if (span.last > taken_ + 1) break;
        // A filter of two pixels' width sees this row and the one before; or this one alone, with a weight of one.
        uint8_t const *const last = lines_[taken_ % 2], *const before = lines_[(taken_ + 1) % 2];
        constexpr unsigned bits = 16, half = 1u << (bits - 1);
        unsigned const weight = unsigned(span.weight(down_, taken_) * (1u << bits) + 0.5), rest = (1u << bits) - weight;
        for (size_t index = 0; index != across_.target * channels_k; ++index)
            between_[index] = uint8_t((last[index] * weight + before[index] * rest + half) >> bits);
    }
}

void resizer_t::resize_columns(uint16_t const *from, uint8_t *to) const noexcept {
    loops_->columns(from, firsts_, weights_, taps(across_), across_.target, to);
}

void resizer_t::write(uint8_t const *line) noexcept {
    uint8_t *to = output_ + written_++ * down_bytes_;
    if (across_bytes_ == ptrdiff_t(channels_k)) {
        std::memcpy(to, line, across_.target * channels_k);
        return;
    }
    for (uint32_t column = 0; column != across_.target; ++column, to += across_bytes_, line += channels_k)
        std::memcpy(to, line, channels_k);
}

} // namespace uform
