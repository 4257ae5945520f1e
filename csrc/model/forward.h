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

/** An item's tokens: bytes, and the query token where choices are scored; or a grid of patches. Never empty. */
struct segment_t {
    modality_t modality = modality_t::text_k;
    bool query = false;             /**< Text: one more token follows the bytes, row 256 of `embed.bytes`. */
    uint8_t const *bytes = nullptr; /**< Text. */
    size_t byte_count = 0;
    size_t times = 0; /**< Media: tokens along time, at the most, of `rows` times `columns` tokens each. */
    size_t rows = 1;
    size_t columns = 1;
    size_t item = 0; /**< Row of `embeddings`, index of choices. */
    size_t row = 0;  /**< First row in `states` and `token_vectors`. */

    /** At the most: a clip may turn out to be shorter than its headers say. */
    size_t tokens() const noexcept {
        return modality == modality_t::text_k ? byte_count + query : times * rows * columns;
    }
};

/** Where the patches of media come from. Called on many threads at once, for different segments. */
class patches_source_t {
  public:
    /** Bytes of scratch, aligned to 64, that `decode` fills and `patches` reads. */
    virtual size_t scratch_bytes(segment_t const &segment) const noexcept = 0;
    /**
     *  Decodes an item, and answers how far it reaches along time: less than the segment where a clip turns out to be
     *  shorter, 0 where the item is to be left out. SUCCESS, or a failure noted on the calling thread.
     */
    virtual uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept = 0;
    /** Patches of some tokens in F32, [count, stride]; what is past a patch's width is left as it is. */
    virtual void patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                         size_t stride) const noexcept = 0;

  protected:
    ~patches_source_t() = default;
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

    patches_source_t const *patches = nullptr; /**< Of a batch of media; nullptr: the batch is text. */
    size_t *tokens = nullptr;                  /**< [items] Media: tokens that each segment's item came to have. */

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
 *  SUCCESS, OUT_OF_MEMORY, CANCELLED where the progress handler returned false, or what decoding failed with, noted
 *  then. Nothing is noted otherwise. `cpu_class` must be supported.
 *  Uses the scratch of the team's slots, and leaves its shared scratch to the caller.
 */
uform_status_t forward(uform_model_t const &model, uform_cpu_class_t cpu_class, batch_t const &batch,
                       team_t &team) noexcept;

} // namespace uform
