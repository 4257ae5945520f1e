#if defined(__x86_64__)
#include <cstring>

#define UFORM_TARGET "avx2,fma,f16c,popcnt"
#include "../simd/haswell.h"

#include "score_simd.h"

namespace uform {
namespace {

/** `lanes_` queries at once. */
template <size_t lanes_> void score_bits(score_t const &arguments) noexcept {
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *bytes = static_cast<uint8_t const *>(arguments.rows) + row * arguments.row_bytes;
        auto const *queries = static_cast<uint64_t const *>(arguments.queries);
        int64_t sums[lanes_] = {};
        auto const step = [&](uint64_t word) noexcept {
#pragma GCC unroll 8
            for (size_t lane = 0; lane != lanes_; ++lane) sums[lane] += __builtin_popcountll(word ^ queries[lane]);
            queries += lanes_;
        };
        size_t first = 0;
#pragma GCC unroll 4
        for (; first + 8 <= arguments.width; first += 8) {
            uint64_t word;
            __builtin_memcpy(&word, bytes + first, 8);
            step(word);
        }
        if (first != arguments.width) {
            uint64_t word = 0;
            std::memcpy(&word, bytes + first, arguments.width - first);
            step(word);
        }
        auto *scores = static_cast<int32_t *>(arguments.scores) + row * lanes_;
        for (size_t lane = 0; lane != lanes_; ++lane) scores[lane] = static_cast<int32_t>(sums[lane]);
    }
}

/** 16 bytes as numbers of 16 bits. */
__m256i widened(int8_t const *bytes) noexcept {
    return _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<__m128i const *>(bytes)));
}

} // namespace

void score_f32_haswell(score_t const &arguments) noexcept { score_f32<haswell_t, 6, 2, score_lanes_k>(arguments); }

void score_f32_half_haswell(score_t const &arguments) noexcept {
    score_f32<haswell_t, 6, 2, score_half_lanes_k>(arguments);
}

void score_f32_narrow_haswell(score_t const &arguments) noexcept {
    score_f32<haswell_t, 12, 1, score_narrow_lanes_k>(arguments);
}

/** Four neighbouring columns at once, widened to 16 bits: products of pairs of them, summed up, fit 32. */
void score_i8_haswell(score_t const &arguments) noexcept {
    constexpr size_t lanes = score_i8_lanes_k;
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *numbers = static_cast<int8_t const *>(arguments.rows) + row * arguments.row_bytes;
        auto const *queries = static_cast<int8_t const *>(arguments.queries);
        __m256i sums[4] = {};
        for (size_t column = 0; column < arguments.width; column += 4, queries += 4 * lanes) {
            int four = 0;
            size_t const left = arguments.width - column;
            if (left >= 4) __builtin_memcpy(&four, numbers + column, 4);
            else std::memcpy(&four, numbers + column, left);
            __m256i const wide = _mm256_broadcastq_epi64(_mm_cvtepi8_epi16(_mm_cvtsi32_si128(four)));
            for (size_t part = 0; part != 4; ++part) {
                auto const *from = reinterpret_cast<__m128i const *>(queries + 16 * part);
                __m256i const query = _mm256_cvtepi8_epi16(_mm_load_si128(from));
                sums[part] = _mm256_add_epi32(sums[part], _mm256_madd_epi16(wide, query));
            }
        }
        // Each lane's sum is in two halves, side by side; adding them leaves quarters of vectors in another order.
        auto *scores = reinterpret_cast<__m256i *>(static_cast<int32_t *>(arguments.scores) + row * lanes);
        for (size_t part = 0; part != 2; ++part) {
            __m256i const both = _mm256_hadd_epi32(sums[2 * part], sums[2 * part + 1]);
            _mm256_storeu_si256(scores + part, _mm256_permute4x64_epi64(both, 0xd8));
        }
    }
}

/** With one query, neighbouring columns stand in the lanes of a vector. */
void score_i8_one_haswell(score_t const &arguments) noexcept {
    auto const *query = static_cast<int8_t const *>(arguments.queries);
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *numbers = static_cast<int8_t const *>(arguments.rows) + row * arguments.row_bytes;
        __m256i sums = _mm256_setzero_si256();
        size_t column = 0;
        for (; column + 16 <= arguments.width; column += 16)
            sums = _mm256_add_epi32(sums, _mm256_madd_epi16(widened(numbers + column), widened(query + column)));
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
        int32_t sum = _mm_cvtsi128_si32(_mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1)));
        for (; column != arguments.width; ++column) sum += numbers[column] * query[column];
        static_cast<int32_t *>(arguments.scores)[row] = sum;
    }
}

void score_bits_haswell(score_t const &arguments) noexcept { score_bits<score_bits_lanes_k>(arguments); }

void score_bits_one_haswell(score_t const &arguments) noexcept { score_bits<1>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
