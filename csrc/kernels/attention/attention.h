/**
 *  Attention of one head inside one segment, bidirectional:
 *
 *      out[q] = sum over k of softmax_k(queries[q] . keys[k]) * values[k]
 *
 *  Queries carry the factor log2(e) / sqrt(head_dimension): the softmax is one of powers of two. It runs online
 *  (Milakov and Gimelshein, 2018) over blocks of 128 keys counted from the segment's start, so that a query's sums are
 *  the same whichever queries share a call. Where all scores are known to be small, no maximum is looked for: powers of
 *  them, and sums of more than any segment has, are far from the ends of F32. Keys and values are packed to BF16 panels
 * (packed.h) once a call; scores, maxima and sums are F32.
 *
 *  Tolerance against float64 on the same inputs, keys and values rounded to BF16, in terms of the largest |value|: 1e-5
 *  for F32 classes, 1e-2 for BF16 ones, whose probabilities are rounded; and the error of the scores (product.h), whose
 *  powers are off by as much.
 *  Work: 4 * queries * keys * head_dimension FLOP and an exponential a pair.
 */
#pragma once
#include <cstddef>

#include "../packed.h"

namespace uform {

struct attention_t {
    void const *queries = nullptr; /**< Activations: first token's head. So are keys and values. */
    void const *keys = nullptr;
    void const *values = nullptr;
    size_t stride = 0; /**< Elements from token to token. */
    size_t count = 0;  /**< Tokens of the segment. */
    size_t head_dimension = 0;
    size_t window = 0;      /**< Tokens that a query attends each way; 0: all. */
    size_t query_begin = 0; /**< Range of the segment's queries to compute. */
    size_t query_end = 0;
    bool bounded = false; /**< No score is above `attention_bound_k` or below its negative. */
    void *out = nullptr;  /**< Activations: the segment's first token's head. */
    size_t out_stride = 0;
    std::byte *scratch = nullptr; /**< `attention_scratch` bytes, aligned to 64. */
};

constexpr float attention_bound_k = 64;
constexpr size_t attention_block_keys_k = 128;
constexpr size_t attention_most_rows_k = 32;

/** Bytes of scratch for segments of up to `count` tokens. */
constexpr size_t attention_scratch(size_t count, size_t head_dimension) noexcept {
    return 2 * round_up(count, tile_rows_k) * head_dimension * sizeof(bf16_t) +
           attention_most_rows_k * (3 * attention_block_keys_k + 2 * head_dimension) * sizeof(float);
}

void attention_serial(attention_t const &arguments) noexcept;
void attention_haswell(attention_t const &arguments) noexcept;
void attention_skylake(attention_t const &arguments) noexcept;
void attention_genoa(attention_t const &arguments) noexcept;
void attention_sapphire(attention_t const &arguments) noexcept;

} // namespace uform
