/**
 *  The forward pass over a batch of segments on host threads.
 *
 *  Threads take groups of whole segments through the whole network; segments too long for a fair share are worked on
 *  by all threads together first. Whatever the split, each output is the same sequence of additions: an item's bits
 *  depend on its bytes, the model and the CPU class alone.
 */
#pragma once
#include <cstddef>
#include <cstdint>

#include "uform/encode.h"

#include "../core/team.h"
#include "model.h"

namespace uform {

/** An item's tokens: bytes, and the query token where choices are scored. Never empty. */
struct segment_t {
    uint8_t const *bytes = nullptr;
    size_t byte_count = 0;
    bool query = false; /**< One more token follows the bytes: row 256 of `embed.bytes`. */
    size_t item = 0;    /**< Row of `embeddings`, index of choices. */
    size_t row = 0;     /**< First row in `states` and `token_vectors`. */

    size_t tokens() const noexcept { return byte_count + query; }
};

/** Neighbouring segments that go through the network together. */
struct group_t {
    size_t first = 0; /**< Of the batch's segments. */
    size_t count = 0;
    size_t tokens = 0;
    size_t longest = 0; /**< Tokens of its longest segment. */
    double cost = 0;    /**< Estimated FLOP. */
};

/** What is to be computed: NULL surfaces are left out. Rows have no gaps between them. */
struct batch_t {
    segment_t const *segments = nullptr;
    size_t count = 0;

    group_t *groups = nullptr; /**< Room for `count` groups, for the plan. */

    uform_scalar_t scalar = uform_f32_k; /**< Of the three surfaces that follow. */
    void *embeddings = nullptr;          /**< [items, dimensions] */
    void *states = nullptr;              /**< [tokens, hidden] */
    void *token_vectors = nullptr;       /**< [tokens, token_width] */

    uint8_t const *choices = nullptr;             /**< Legal bytes of all items. */
    size_t const *choice_offsets = nullptr;       /**< [items + 1] */
    uint32_t const *temperature_groups = nullptr; /**< [items], or NULL: all of group 0. Checked by the caller. */
    float *probabilities = nullptr;               /**< [choices]; for segments with the query token. */

    uform_progress_t progress = nullptr;
    void *progress_context = nullptr;
    size_t completed = 0; /**< Items that were done before: empty ones. */
    size_t total = 0;     /**< Items in all. */
};

/**
 *  SUCCESS, OUT_OF_MEMORY, or CANCELLED where the progress handler returned false. `cpu_class` must be supported.
 *  Uses the scratch of the team's slots, and leaves its shared scratch to the caller.
 */
uform_status_t forward(uform_model_t const &model, uform_cpu_class_t cpu_class, batch_t const &batch,
                       team_t &team) noexcept;

} // namespace uform
