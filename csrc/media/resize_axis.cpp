#include "media/resize_axis.h"

#include <algorithm>
#include <cmath>

namespace uform {
namespace {

/** One, as a weight over rows in sums of 16 and of 32 bits, and as one over columns. */
constexpr double row_one_k = 1 << 16, wide_row_one_k = 1 << 24, column_one_k = 1 << column_weight_bits_k;

/** Weights this close to zero are left out, so that a row of the source never belongs to three of the target. */
constexpr double negligible_k = 1e-6;

} // namespace

resize_rows_t const &resize_loops() noexcept {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) return resize_rows_haswell;
#endif
    return resize_rows_serial;
}

resize_axis_t::resize_axis_t(uint32_t source, double extent, uint32_t target) noexcept
    : source(source), target(target), scale(extent / target), support(std::max(scale, 1.0)) {}

/** A filter of width 2 s sees at most 2 s + 1 pixels. */
size_t resize_axis_t::pixels() const noexcept { return std::min(size_t(2 * support) + 1, size_t(source)); }

resize_span_t::resize_span_t(resize_axis_t const &axis, uint32_t pixel) noexcept : center((pixel + 0.5) * axis.scale) {
    double const reach = axis.support - negligible_k;
    first = uint32_t(std::max(0.0, std::ceil(center - reach - 0.5)));
    last = uint32_t(std::min(double(axis.source), std::floor(center + reach - 0.5) + 1));
    double sum = 0;
    for (uint32_t index = first; index != last; ++index) sum += 1 - std::fabs(index + 0.5 - center) / axis.support;
    norm = 1 / sum;
}

double resize_span_t::weight(resize_axis_t const &axis, uint32_t pixel) const noexcept {
    return (1 - std::fabs(pixel + 0.5 - center) / axis.support) * norm;
}

uint32_t resize_span_t::next_weight(resize_axis_t const &axis, uint32_t pixel, double one) noexcept {
    double const wanted = weight(axis, pixel) * one + carry, rounded = std::max(std::floor(wanted + 0.5), 0.0);
    carry = wanted - rounded;
    return uint32_t(rounded);
}

size_t resize_columns_t::taps(resize_axis_t const &axis, size_t group) noexcept {
    return (axis.pixels() + group - 1) / group * group;
}

uint64_t resize_columns_t::bytes(resize_axis_t const &axis, size_t group) noexcept {
    return (sizeof(uint32_t) + taps(axis, group) * sizeof(int16_t)) * uint64_t(axis.target);
}

void resize_columns_t::open(resize_axis_t const &axis, size_t group, uint8_t *memory) noexcept {
    size_t const pixels = axis.pixels();
    taps_ = taps(axis, group), columns_ = axis.target;
    firsts_ = reinterpret_cast<uint32_t *>(memory);
    weights_ = reinterpret_cast<int16_t *>(firsts_ + columns_);
    int16_t *weights = weights_;
    for (uint32_t column = 0; column != columns_; ++column, weights += taps_) {
        resize_span_t span(axis, column);
        uint32_t const first = std::min(span.first, uint32_t(axis.source - pixels));
        firsts_[column] = first;
        for (uint32_t pixel = span.first; pixel != span.last; ++pixel)
            weights[pixel - first] = int16_t(span.next_weight(axis, pixel, column_one_k));
    }
}

void resize_columns_t::resize(uint16_t const *from, uint8_t *to) const noexcept {
    resize_loops().columns(from, firsts_, weights_, taps_, columns_, to);
}

void resize_columns_t::resize_plane(uint16_t const *from, int16_t *to) const noexcept {
    resize_loops().plane_columns(from, firsts_, weights_, taps_, columns_, to);
}

uint64_t resize_sums_t::bytes(size_t samples) noexcept {
    return 2 * (sizeof(uint32_t) + sizeof(uint16_t)) * (uint64_t(samples) + sums_padding_k);
}

void resize_sums_t::open(resize_axis_t const &axis, size_t samples, uint8_t *memory) noexcept {
    axis_ = axis, samples_ = samples;
    size_t const stride = samples + sums_padding_k;
    wide_sums_[0] = reinterpret_cast<uint32_t *>(memory), wide_sums_[1] = wide_sums_[0] + stride;
    sums_[0] = reinterpret_cast<uint16_t *>(wide_sums_[1] + stride), sums_[1] = sums_[0] + stride;
    start(0);
    if (axis.target > 1) start(1);
}

/** What is cut of each product is half of 1/256 on average. */
void resize_sums_t::start(uint32_t row) noexcept {
    resize_span_t &span = spans_[row % 2] = resize_span_t(axis_, row);
    if (is_wide()) std::fill_n(wide_sums_[row % 2], samples_, 0u);
    else std::fill_n(sums_[row % 2], samples_, uint16_t(span.pixels() / 2));
}

void resize_sums_t::take(uint8_t const *row) noexcept {
    if (is_wide()) add_wide(row);
    else add(row);
    ++taken_;
}

void resize_sums_t::add(uint8_t const *row) noexcept {
    bool const covered[2] = {spans_[0].covers(taken_), spans_[1].covers(taken_)};
    uint16_t weights[2] = {};
    for (size_t slot = 0; slot != 2; ++slot)
        if (covered[slot])
            // A single row's weight of one is a little less here, and is rounded back later.
            weights[slot] = uint16_t(std::min(spans_[slot].next_weight(axis_, taken_, row_one_k), 0xFFFFu));
    resize_rows_t const &loops = resize_loops();
    if (covered[0] && covered[1]) loops.add_twice(row, samples_, weights[0], sums_[0], weights[1], sums_[1]);
    else if (covered[0]) loops.add(row, samples_, weights[0], sums_[0]);
    else if (covered[1]) loops.add(row, samples_, weights[1], sums_[1]);
}

void resize_sums_t::add_wide(uint8_t const *row) noexcept {
    for (size_t slot = 0; slot != 2; ++slot) {
        if (!spans_[slot].covers(taken_)) continue;
        uint32_t const weight = spans_[slot].next_weight(axis_, taken_, wide_row_one_k);
        uint32_t *const sums = wide_sums_[slot];
        for (size_t index = 0; index != samples_; ++index) sums[index] += row[index] * weight;
    }
}

uint16_t const *resize_sums_t::finished() noexcept {
    if (row_ == axis_.target || spans_[row_ % 2].last > taken_) return nullptr;
    uint16_t *const sums = sums_[row_ % 2];
    if (is_wide())
        for (size_t index = 0; index != samples_; ++index) sums[index] = uint16_t(wide_sums_[row_ % 2][index] >> 16);
    return sums;
}

void resize_sums_t::next() noexcept {
    if (++row_ + 1 < axis_.target) start(row_ + 1);
}

} // namespace uform
