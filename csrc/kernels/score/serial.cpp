#include "score.h"

#include <bit>
#include <cmath>
#include <cstring>

namespace uform {
namespace {

std::byte const *row_of(score_t const &arguments, size_t row) noexcept {
    return static_cast<std::byte const *>(arguments.rows) + row * arguments.row_bytes;
}

template <size_t lanes_> void score_f32(score_t const &arguments) noexcept {
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *numbers = reinterpret_cast<float const *>(row_of(arguments, row));
        auto const *queries = static_cast<float const *>(arguments.queries);
        float sums[lanes_] = {};
        for (size_t column = 0; column != arguments.width; ++column, queries += lanes_)
            for (size_t lane = 0; lane != lanes_; ++lane)
                sums[lane] = std::fma(numbers[column], queries[lane], sums[lane]);
        std::memcpy(static_cast<float *>(arguments.scores) + row * lanes_, sums, sizeof(sums));
    }
}

template <size_t lanes_> void score_i8(score_t const &arguments) noexcept {
    auto const *queries = static_cast<int8_t const *>(arguments.queries);
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *numbers = reinterpret_cast<int8_t const *>(row_of(arguments, row));
        int32_t sums[lanes_] = {};
        for (size_t column = 0; column != arguments.width; ++column)
            for (size_t lane = 0; lane != lanes_; ++lane)
                sums[lane] += numbers[column] * queries[(column / 4 * lanes_ + lane) * 4 + column % 4];
        std::memcpy(static_cast<int32_t *>(arguments.scores) + row * lanes_, sums, sizeof(sums));
    }
}

template <size_t lanes_> void score_bits(score_t const &arguments) noexcept {
    for (size_t row = 0; row != arguments.count; ++row) {
        std::byte const *bytes = row_of(arguments, row);
        auto const *queries = static_cast<uint64_t const *>(arguments.queries);
        int32_t sums[lanes_] = {};
        for (size_t first = 0; first < arguments.width; first += 8, queries += lanes_) {
            uint64_t word = 0;
            std::memcpy(&word, bytes + first, arguments.width - first < 8 ? arguments.width - first : 8);
            for (size_t lane = 0; lane != lanes_; ++lane) sums[lane] += std::popcount(word ^ queries[lane]);
        }
        std::memcpy(static_cast<int32_t *>(arguments.scores) + row * lanes_, sums, sizeof(sums));
    }
}

} // namespace

void score_f32_serial(score_t const &arguments) noexcept { score_f32<score_lanes_k>(arguments); }

void score_f32_half_serial(score_t const &arguments) noexcept { score_f32<score_half_lanes_k>(arguments); }

void score_f32_narrow_serial(score_t const &arguments) noexcept { score_f32<score_narrow_lanes_k>(arguments); }

void score_i8_serial(score_t const &arguments) noexcept { score_i8<score_i8_lanes_k>(arguments); }

void score_i8_one_serial(score_t const &arguments) noexcept { score_i8<1>(arguments); }

void score_bits_serial(score_t const &arguments) noexcept { score_bits<score_bits_lanes_k>(arguments); }

void score_bits_one_serial(score_t const &arguments) noexcept { score_bits<1>(arguments); }

} // namespace uform
