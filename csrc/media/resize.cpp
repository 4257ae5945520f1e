#include "media/resize.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>

namespace uform {
namespace {

constexpr size_t channels_k = 3;

/** Pixels of columns are read four channels at a time: rows of pixels end with one that is not used. */
constexpr size_t row_floats(size_t pixels) noexcept { return pixels * channels_k + 1; }

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

float resizer_t::span_t::weight(axis_t const &axis, uint32_t pixel) const noexcept {
    return float((1 - std::fabs(pixel + 0.5 - center) / axis.support) * norm);
}

resizer_t::~resizer_t() noexcept { std::free(memory_); }

/** A filter of width 2 s sees at most 2 s + 1 pixels. */
size_t resizer_t::taps(axis_t const &across) noexcept {
    return std::min(size_t(2 * across.support) + 1, size_t(across.source));
}

uint64_t resizer_t::bytes(picture_t source, picture_t target, orientation_t orientation) noexcept {
    picture_t const stored = turned(target, orientation);
    double const scale = double(source.width) / stored.width;
    axis_t const across = {source.width, stored.width, scale, std::max(scale, 1.0)};
    uint64_t const widest = std::max(source.width, stored.width);
    return sizeof(float) * (3 * row_floats(widest) + (taps(across) + 1) * uint64_t(stored.width));
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

    memory_ = static_cast<float *>(std::malloc(bytes(source, target, orientation)));
    if (!memory_) return false;
    size_t const floats = row_floats(std::max(source.width, stored.width));
    rows_[0] = memory_, rows_[1] = rows_[0] + floats, line_ = rows_[1] + floats, weights_ = line_ + floats;
    firsts_ = reinterpret_cast<uint32_t *>(weights_ + taps(across_) * stored.width);
    std::memset(memory_, 0, 3 * floats * sizeof(float));
    list_columns();
    spans_[0] = span_t(down_, 0);
    if (stored.height > 1) spans_[1] = span_t(down_, 1);
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
    size_t const count = taps(across_);
    float *weights = weights_;
    for (uint32_t column = 0; column != across_.target; ++column, weights += count) {
        span_t const span(across_, column);
        uint32_t const first = std::min(span.first, uint32_t(across_.source - count));
        firsts_[column] = first;
        for (uint32_t pixel = first; pixel != first + count; ++pixel)
            weights[pixel - first] = pixel >= span.first && pixel < span.last ? span.weight(across_, pixel) : 0;
    }
}

void resizer_t::take(uint8_t const *row) noexcept {
    if (copies_) copy(row);
    else if (reduces()) reduce(row);
    else enlarge(row);
    ++taken_;
}

void resizer_t::copy(uint8_t const *row) noexcept {
    uint8_t *to = output_ + written_++ * down_bytes_;
    if (across_bytes_ == ptrdiff_t(channels_k)) {
        std::memcpy(to, row, across_.target * channels_k);
        return;
    }
    for (uint32_t column = 0; column != across_.target; ++column, to += across_bytes_, row += channels_k)
        std::memcpy(to, row, channels_k);
}

void resizer_t::reduce(uint8_t const *row) noexcept {
    size_t const count = across_.source * channels_k;
    auto const covers = [this](span_t const &span) { return taken_ >= span.first && taken_ < span.last; };
    auto const weight = [this](span_t const &span) { return span.weight(down_, taken_); };
    bool const both = covers(spans_[0]) && covers(spans_[1]);
    if (both) loops_->add_twice(row, count, weight(spans_[0]), rows_[0], weight(spans_[1]), rows_[1]);
    else
        for (size_t slot = 0; slot != 2; ++slot)
            if (covers(spans_[slot])) loops_->add(row, count, weight(spans_[slot]), rows_[slot]);

    while (written_ != down_.target && spans_[written_ % 2].last == taken_ + 1) {
        span_t &span = spans_[written_ % 2];
        float *const sums = rows_[written_ % 2];
        resize_columns(sums, line_);
        if (written_ + 2 < down_.target) {
            span = span_t(down_, written_ + 2);
            std::memset(sums, 0, count * sizeof(float));
        }
        write(line_);
    }
}

void resizer_t::enlarge(uint8_t const *row) noexcept {
    size_t const count = across_.source * channels_k;
    for (size_t index = 0; index != count; ++index) line_[index] = float(row[index]);
    resize_columns(line_, rows_[taken_ % 2]);
    for (; written_ != down_.target; write(line_)) {
        span_t const span(down_, written_);
        if (span.last > taken_ + 1) break;
        // A filter of two pixels' width sees this row and the one before; or this one alone, with a weight of one.
        float const *const last = rows_[taken_ % 2], *const before = rows_[(taken_ + 1) % 2];
        float const weight = span.weight(down_, taken_), rest = 1 - weight;
        for (size_t index = 0; index != across_.target * channels_k; ++index)
            line_[index] = last[index] * weight + before[index] * rest;
    }
}

void resizer_t::resize_columns(float const *from, float *to) const noexcept {
    loops_->columns(from, firsts_, weights_, taps(across_), across_.target, to);
}

void resizer_t::write(float const *line) noexcept {
    uint8_t *to = output_ + written_++ * down_bytes_;
    if (across_bytes_ == ptrdiff_t(channels_k)) {
        loops_->round(line, across_.target * channels_k, to);
        return;
    }
    for (uint32_t column = 0; column != across_.target; ++column, to += across_bytes_, line += channels_k)
        loops_->round(line, channels_k, to);
}

} // namespace uform
