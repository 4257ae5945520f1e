/**
 *  Scores of rows against a few packed queries: inner products, or Hamming distances. What ranking is made of.
 *
 *  The queries stand in lanes, the rows are read where they lie, and each number of a row meets all lanes at once:
 *
 *  | kind | lanes | queries | scores |
 *  |---|---|---|---|
 *  | F32 | 32 | F32 [width, 32] | F32: fused multiply-adds in the order of the columns, the same bits in every class |
 *  | F32, narrower | 16, 8 | F32 [width, lanes] | the same |
 *  | BF16 | 32 | two panels of packed.h | F32, as product.h has it |
 *  | I8 | 16, or 1 | int8_t [width / 4, lanes, 4], padded with zeros | int32_t, exact |
 *  | bits | 8, or 1 | uint64_t [words, lanes], padded with zeros | int32_t, exact |
 *
 *  Queries are aligned to 64 bytes. Work: 2 * lanes * width FLOP a row; bytes: each row once, queries once a call.
 */
#pragma once
#include <cstddef>
#include <cstdint>

#include "../packed.h"

namespace uform {

struct score_t {
    void const *rows = nullptr;
    size_t row_bytes = 0; /**< From row to row. */
    size_t count = 0;     /**< Of rows. */
    size_t width = 0;     /**< Numbers of a row; of bits, bytes. */
    void const *queries = nullptr;
    void *scores = nullptr; /**< [count, lanes] */
};

/**
 *  Rows whose largest F32 product with each query is wanted, not all of them. Products of rounded numbers, which cost
 *  half as much, leave out the rows that cannot be it; those that are left are multiplied in F32.
 */
struct score_screen_t {
    score_t score;                 /**< F32 rows, at most `score_screen_rows_k`; queries as of BF16, rounded. */
    void const *queries = nullptr; /**< As of F32. */
    size_t query_count = 0;        /**< At most 32. */
    float const *errors = nullptr; /**< [32]: of a rounded product with a row of unit length, at the most. */
    std::byte *scratch = nullptr;  /**< `score_screen_bytes(width)` bytes, aligned to 64. */
    float *maxima = nullptr;       /**< [32]: raised to the products, which have the bits that `f32` gives them. */
};

constexpr size_t score_lanes_k = 32, score_half_lanes_k = 16, score_narrow_lanes_k = 8;
constexpr size_t score_i8_lanes_k = 16, score_bits_lanes_k = 8;
/** Rows that BF16 kernels may read past the last one, without using them, and whose scores they may write. */
constexpr size_t score_slack_rows_k = 32;
constexpr size_t score_screen_rows_k = 192;

/** Scores and rounded rows of a screen. */
constexpr size_t score_screen_bytes(size_t width) noexcept {
    return (score_screen_rows_k + score_slack_rows_k) * score_lanes_k * sizeof(float) +
           score_slack_rows_k * round_up(width, padding_columns_k) * sizeof(bf16_t);
}

void score_f32_serial(score_t const &arguments) noexcept;
void score_f32_haswell(score_t const &arguments) noexcept;
void score_f32_skylake(score_t const &arguments) noexcept;
void score_f32_half_serial(score_t const &arguments) noexcept;
void score_f32_half_haswell(score_t const &arguments) noexcept;
void score_f32_half_skylake(score_t const &arguments) noexcept;
void score_f32_narrow_serial(score_t const &arguments) noexcept;
void score_f32_narrow_haswell(score_t const &arguments) noexcept;
/** False: nothing was done, since numbers are too large, too small or too close to each other to leave rows out. */
bool score_screen_genoa(score_screen_t const &arguments) noexcept;
bool score_screen_sapphire(score_screen_t const &arguments) noexcept;
/** Widths are multiples of 32, and there is memory past the last row and its scores. */
void score_bf16_genoa(score_t const &arguments) noexcept;
void score_bf16_sapphire(score_t const &arguments) noexcept;
/** Widths are at most 65,536, so that sums fit. */
void score_i8_serial(score_t const &arguments) noexcept;
void score_i8_haswell(score_t const &arguments) noexcept;
void score_i8_icelake(score_t const &arguments) noexcept;
void score_i8_one_serial(score_t const &arguments) noexcept;
void score_i8_one_haswell(score_t const &arguments) noexcept;
void score_i8_one_icelake(score_t const &arguments) noexcept;
void score_bits_serial(score_t const &arguments) noexcept;
void score_bits_haswell(score_t const &arguments) noexcept;
void score_bits_one_serial(score_t const &arguments) noexcept;
void score_bits_one_haswell(score_t const &arguments) noexcept;
void score_bits_one_icelake(score_t const &arguments) noexcept;
void score_bits_icelake(score_t const &arguments) noexcept;

} // namespace uform
