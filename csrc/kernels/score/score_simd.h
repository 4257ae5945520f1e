/** F32 scores over a class's vectors. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include "prefetch.h"
#include "score.h"

namespace uform {
namespace {

/**
 *  `rows_` rows against `vectors_` vectors of lanes, of `stride` lanes a column. Meanwhile the rows that come next
 *  are asked for from `next` on, a little with each column: asked for at once, they would hold up the work.
 */
template <typename simd_type_, size_t rows_, size_t vectors_>
inline void score_rows(float const *rows, size_t row_stride, size_t width, float const *queries, size_t stride,
                       float *scores, char const *next, size_t next_step) noexcept {
    using simd_t = simd_type_;
    typename simd_t::vector_t sums[rows_][vectors_];
    // Loops over rows are unrolled for good: GCC would keep a copy of the sums in memory otherwise.
#pragma GCC unroll 16
    for (size_t row = 0; row != rows_; ++row)
#pragma GCC unroll 4
        for (size_t vector = 0; vector != vectors_; ++vector) sums[row][vector] = simd_t::zero();
    // Three rows share a base register: base, base + stride and base + 2 * stride are all addressing modes.
    float const *bases[(rows_ + 2) / 3];
    for (size_t base = 0; base != (rows_ + 2) / 3; ++base) bases[base] = rows + 3 * base * row_stride;
    for (size_t column = 0; column != width; ++column, queries += stride, next += next_step) {
        prefetch_line(next);
        typename simd_t::vector_t lanes[vectors_];
#pragma GCC unroll 4
        for (size_t vector = 0; vector != vectors_; ++vector)
            lanes[vector] = simd_t::load(queries + vector * simd_t::lanes);
#pragma GCC unroll 16
        for (size_t row = 0; row != rows_; ++row) {
            auto const number = simd_t::fill(bases[row / 3][row % 3 * row_stride + column]);
#pragma GCC unroll 4
            for (size_t vector = 0; vector != vectors_; ++vector)
                sums[row][vector] = simd_t::multiply_add(number, lanes[vector], sums[row][vector]);
        }
    }
#pragma GCC unroll 16
    for (size_t row = 0; row != rows_; ++row)
#pragma GCC unroll 4
        for (size_t vector = 0; vector != vectors_; ++vector)
            simd_t::store(scores + row * stride + vector * simd_t::lanes, sums[row][vector]);
}

/** `stride` lanes in blocks of `rows_` rows and `vectors_` vectors; rows that are left over in smaller ones. */
template <typename simd_type_, size_t rows_, size_t vectors_, size_t stride_>
void score_f32(score_t const &arguments) noexcept {
    using simd_t = simd_type_;
    size_t const row_stride = arguments.row_bytes / sizeof(float), width = arguments.width;
    auto const *rows = static_cast<float const *>(arguments.rows);
    auto *scores = static_cast<float *>(arguments.scores);
    auto const take = [&]<size_t count_>(size_t row) noexcept {
        auto const *next = reinterpret_cast<char const *>(rows + row * row_stride);
        for (size_t lane = 0; lane != stride_; lane += vectors_ * simd_t::lanes)
            score_rows<simd_t, count_, vectors_>(
                rows + row * row_stride, row_stride, width, static_cast<float const *>(arguments.queries) + lane,
                stride_, scores + row * stride_ + lane, next, lane ? 0 : count_ * row_stride * sizeof(float) / width);
    };
    size_t row = 0;
    for (; arguments.count - row >= rows_; row += rows_) take.template operator()<rows_>(row);
    for (; arguments.count - row >= 3; row += 3) take.template operator()<3>(row);
    for (; row != arguments.count; ++row) take.template operator()<1>(row);
}

} // namespace
} // namespace uform
