/** Memory of the forward pass: what a group of segments needs, and what each thread needs besides. */
#pragma once
#include <cstddef>
#include <cstdint>

#include "../kernels/kernels.h"
#include "forward.h"
#include "plan.h"
#include "steps.h"

namespace uform {

/** Hands out aligned pieces of a block; over nullptr it only counts the bytes. */
class carver_t {
  public:
    explicit carver_t(std::byte *block) noexcept : block_(block) {}

    template <typename element_type_ = std::byte> element_type_ *take(size_t count) noexcept {
        size_t const offset = used_;
        used_ = round_up(used_ + count * sizeof(element_type_), 64);
        return block_ ? reinterpret_cast<element_type_ *>(block_ + offset) : nullptr;
    }
    size_t used() const noexcept { return used_; }

  private:
    std::byte *block_ = nullptr;
    size_t used_ = 0;
};

/** What surfaces the batch wants, as far as memory depends on it. */
struct wanted_t {
    bool embeddings = false;
    bool token_vectors = false;
    bool choices = false;
    size_t patch_columns = 0; /**< Of a patch, padded; 0 for text. */

    wanted_t(uform_model_t const &model, batch_t const &batch) noexcept
        : embeddings(batch.embeddings), token_vectors(batch.token_vectors), choices(batch.probabilities) {
        if (batch.patches) patch_columns = model.patch_embeddings[size_t(batch.segments->modality)].padded_columns();
    }
};

/** A group's activations. Products may read up to 31 rows past the last one, so every buffer has room for those. */
struct workspace_t {
    static constexpr size_t slack_k = 32;

    float *residual = nullptr;           /**< [tokens, hidden] */
    std::byte *normed = nullptr;         /**< Activations [tokens, hidden]: after a norm, and after attention. */
    std::byte *heads = nullptr;          /**< Activations [3 * heads, tokens, head_dimension]: queries, keys, values. */
    std::byte *gated = nullptr;          /**< Activations [gated tokens, width] */
    uint32_t *positions = nullptr;       /**< [tokens]: row of the rotary table. */
    float *rotary = nullptr;             /**< Media: a row a token, [tokens, 2, head_dimension / 2]. */
    segment_t const *segments = nullptr; /**< [segment count], of the batch. */
    size_t *starts = nullptr;            /**< [segment count + 1]: first token of each segment in the group. */
    size_t *times = nullptr;             /**< Media: [segment count], how far they reach along time. */
    std::byte *pooled = nullptr;         /**< Activations [segment count, hidden] */
    float *results = nullptr;            /**< What the heads make of `pooled`. */
    step_t *steps = nullptr;             /**< [step count]: of a group that threads share. */
    size_t segment_count = 0;

    /** Of all segments, once they are embedded. */
    size_t tokens() const noexcept { return starts[segment_count]; }

    /** Steps of a group that threads share, at the most. */
    static size_t step_count(config_t const &config) noexcept { return 7 * config.depth + 6; }

    /** `gated_tokens`: tokens whose gated units are kept at once. */
    workspace_t(carver_t &carver, config_t const &config, kernels_t const &kernels, wanted_t wanted, size_t tokens,
                size_t segment_count, size_t gated_tokens, bool is_shared) noexcept
        : segment_count(segment_count) {
        size_t const size = kernels.activation_size(), rows = tokens + slack_k;
        residual = carver.take<float>(tokens * config.hidden);
        normed = carver.take(rows * config.hidden * size);
        heads = carver.take(rows * 3 * config.hidden * size);
        gated = carver.take((gated_tokens + slack_k) * config.width * size);
        positions = carver.take<uint32_t>(tokens);
        rotary = carver.take<float>(wanted.patch_columns ? tokens * config.head_dimension : 0);
        starts = carver.take<size_t>(segment_count + 1);
        times = carver.take<size_t>(wanted.patch_columns ? segment_count : 0);
        pooled = carver.take((segment_count + slack_k) * config.hidden * size);
        size_t const columns = wanted.choices ? 256 : wanted.embeddings ? config.dimensions : 0;
        results = carver.take<float>(segment_count * columns);
        steps = carver.take<step_t>(is_shared ? step_count(config) : 0);
    }
};

/** A thread's own memory. */
struct local_t {
    std::byte *attention = nullptr;   /**< Packed keys and values of a head, blocks of scores. */
    float *block = nullptr;           /**< [head tokens, head_dimension], or [head tokens, token_width]. */
    float *decoded = nullptr;         /**< A tile of E4M3 weights. */
    std::byte *item = nullptr;        /**< Media: an item, decoded. */
    float *patches = nullptr;         /**< Media: [patch tokens, padded patch] */
    std::byte *activations = nullptr; /**< Media: the same as activations. */

    /** Patches that are embedded at once: few enough for L2. */
    static constexpr size_t patch_tokens_k = 64;

    local_t(carver_t &carver, config_t const &config, kernels_t const &kernels, wanted_t wanted, bool quantized,
            size_t longest, size_t item_bytes) noexcept {
        attention = carver.take(attention_scratch(longest, config.head_dimension));
        size_t const columns = config.token_width > config.head_dimension ? config.token_width : config.head_dimension;
        block = carver.take<float>(kernels.head_tokens * columns);
        size_t const widest = config.width > config.hidden ? config.width : config.hidden;
        decoded = carver.take<float>(quantized ? tile_rows_k * round_up(widest, padding_columns_k) : 0);
        item = carver.take(item_bytes);
        patches = carver.take<float>(patch_tokens_k * wanted.patch_columns);
        size_t const rows = wanted.patch_columns ? patch_tokens_k + workspace_t::slack_k : 0;
        activations = carver.take(rows * wanted.patch_columns * kernels.activation_size());
    }
};

} // namespace uform
