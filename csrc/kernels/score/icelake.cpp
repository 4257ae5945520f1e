/** Integers with AVX512-VNNI and AVX512-VPOPCNTDQ, which Ice Lake has and every class above SKYLAKE. */
#if defined(__x86_64__)
#include <cstring>

#include "../simd/intrinsics.h"
#include "score.h"

#define UFORM_TARGET "avx2,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512vpopcntdq"
#include "../simd/begin.h"

namespace uform {
namespace {

/** Up to `rows_` rows; VPDPBUSD takes unsigned bytes on one side, so these are 128 more than they are. */
template <size_t rows_>
void score_i8_rows(uint8_t const *rows, size_t row_bytes, size_t width, int8_t const *queries, __m512i excess,
                   int32_t *scores) noexcept {
    constexpr size_t lanes = score_i8_lanes_k;
    __m512i sums[rows_];
#pragma GCC unroll 8
    for (size_t row = 0; row != rows_; ++row) sums[row] = _mm512_setzero_si512();
    auto const step = [&](size_t column, size_t count) noexcept {
        __m512i const query = _mm512_load_si512(queries + column * lanes);
#pragma GCC unroll 8
        for (size_t row = 0; row != rows_; ++row) {
            int four = 0;
            if (count == 4) __builtin_memcpy(&four, rows + row * row_bytes + column, 4);
            else std::memcpy(&four, rows + row * row_bytes + column, count);
            __m512i const raised = _mm512_set1_epi32(four ^ static_cast<int>(0x80808080u));
            sums[row] = _mm512_dpbusd_epi32(sums[row], raised, query);
        }
    };
    size_t column = 0;
    for (; column + 4 <= width; column += 4) step(column, 4);
    if (column != width) step(column, width - column);
#pragma GCC unroll 8
    for (size_t row = 0; row != rows_; ++row)
        _mm512_storeu_si512(scores + row * lanes, _mm512_sub_epi32(sums[row], excess));
}

/** Of neighbouring lanes: those of `even` and of `odd` in turn. */
__m256i pairwise_sums(__m256i even, __m256i odd) noexcept {
    return _mm256_add_epi64(_mm256_unpacklo_epi64(even, odd), _mm256_unpackhi_epi64(even, odd));
}

} // namespace

void score_i8_icelake(score_t const &arguments) noexcept {
    constexpr size_t lanes = score_i8_lanes_k, most_rows = 8;
    auto const *queries = static_cast<int8_t const *>(arguments.queries);
    auto const *rows = static_cast<uint8_t const *>(arguments.rows);
    auto *scores = static_cast<int32_t *>(arguments.scores);
    // What the 128 bring in, of each lane; queries are padded with zeros.
    __m512i excess = _mm512_setzero_si512();
    for (size_t column = 0; column < arguments.width; column += 4)
        excess = _mm512_dpbusd_epi32(excess, _mm512_set1_epi8(char(128)), _mm512_load_si512(queries + column * lanes));
    size_t row = 0;
    for (; arguments.count - row >= most_rows; row += most_rows)
        score_i8_rows<most_rows>(rows + row * arguments.row_bytes, arguments.row_bytes, arguments.width, queries,
                                 excess, scores + row * lanes);
    for (; row != arguments.count; ++row)
        score_i8_rows<1>(rows + row * arguments.row_bytes, arguments.row_bytes, arguments.width, queries, excess,
                         scores + row * lanes);
}

/** With one query, neighbouring columns stand in the lanes of a vector. */
void score_i8_one_icelake(score_t const &arguments) noexcept {
    auto const *query = static_cast<int8_t const *>(arguments.queries);
    // Of what is left over, lanes past the end are zero in the query.
    auto const mask_at = [&](size_t column) noexcept {
        size_t const left = arguments.width - column;
        return left < 64 ? (__mmask64(1) << left) - 1 : ~__mmask64(0);
    };
    __m512i const raise = _mm512_set1_epi8(char(0x80));
    __m512i excess = _mm512_setzero_si512();
    for (size_t column = 0; column < arguments.width; column += 64)
        excess = _mm512_dpbusd_epi32(excess, raise, _mm512_maskz_loadu_epi8(mask_at(column), query + column));
    int32_t const total = _mm512_reduce_add_epi32(excess);
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *numbers = static_cast<int8_t const *>(arguments.rows) + row * arguments.row_bytes;
        __m512i sums = _mm512_setzero_si512();
        for (size_t column = 0; column < arguments.width; column += 64) {
            __mmask64 const mask = mask_at(column);
            __m512i const raised = _mm512_xor_si512(_mm512_maskz_loadu_epi8(mask, numbers + column), raise);
            sums = _mm512_dpbusd_epi32(sums, raised, _mm512_maskz_loadu_epi8(mask, query + column));
        }
        static_cast<int32_t *>(arguments.scores)[row] = _mm512_reduce_add_epi32(sums) - total;
    }
}

void score_bits_icelake(score_t const &arguments) noexcept {
    constexpr size_t lanes = score_bits_lanes_k;
    for (size_t row = 0; row != arguments.count; ++row) {
        auto const *bytes = static_cast<uint8_t const *>(arguments.rows) + row * arguments.row_bytes;
        auto const *queries = static_cast<uint64_t const *>(arguments.queries);
        __m512i sum = _mm512_setzero_si512();
        auto const step = [&](uint64_t word) noexcept {
            __m512i const differ = _mm512_xor_si512(_mm512_set1_epi64(int64_t(word)), _mm512_load_si512(queries));
            sum = _mm512_add_epi64(sum, _mm512_popcnt_epi64(differ));
            queries += lanes;
        };
        size_t first = 0;
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
        auto *scores = reinterpret_cast<__m256i *>(static_cast<int32_t *>(arguments.scores) + row * lanes);
        _mm256_storeu_si256(scores, _mm512_cvtepi64_epi32(sum));
    }
}

/** With one query, four rows at once: their sums are added up side by side. */
void score_bits_one_icelake(score_t const &arguments) noexcept {
    constexpr size_t rows = 4, vector_bytes = sizeof(__m256i);
    auto const *query = static_cast<uint8_t const *>(arguments.queries);
    auto const *first = static_cast<uint8_t const *>(arguments.rows);
    auto *scores = static_cast<int32_t *>(arguments.scores);
    for (size_t row = 0; row < arguments.count; row += rows, first += rows * arguments.row_bytes) {
        size_t const some = arguments.count - row < rows ? arguments.count - row : rows;
        __m256i sums[rows] = {};
        for (size_t offset = 0; offset < arguments.width; offset += vector_bytes) {
            size_t const left = arguments.width - offset;
            __mmask32 const mask = left < vector_bytes ? (__mmask32(1) << left) - 1 : ~__mmask32(0);
            __m256i const bits = _mm256_maskz_loadu_epi8(mask, query + offset);
#pragma GCC unroll 4
            for (size_t index = 0; index != rows; ++index) {
                // What is left over at the end is read twice.
                uint8_t const *bytes = first + (index < some ? index : some - 1) * arguments.row_bytes + offset;
                __m256i const differ = _mm256_xor_si256(bits, _mm256_maskz_loadu_epi8(mask, bytes));
                sums[index] = _mm256_add_epi64(sums[index], _mm256_popcnt_epi64(differ));
            }
        }
        __m256i const upper = pairwise_sums(sums[0], sums[1]), lower = pairwise_sums(sums[2], sums[3]);
        __m256i const total = _mm256_add_epi64(_mm256_permute2x128_si256(upper, lower, 0x20),
                                               _mm256_permute2x128_si256(upper, lower, 0x31));
        _mm_mask_storeu_epi32(scores + row, __mmask8((1u << some) - 1), _mm256_cvtepi64_epi32(total));
    }
}

} // namespace uform

#include "../simd/end.h"
#endif
