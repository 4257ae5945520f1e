/** One batch of texts, with its arguments checked: what `text_encode` and `text_choose` have in common. */
#pragma once
#include "uform/encode.h"

#include "../core/arena.h"
#include "../core/team.h"
#include "../model/model.h"

namespace uform {

/** Surfaces that are NULL are left out; `probabilities` make it a call of `text_choose`. */
struct text_call_t {
    uform_model_t const *model = nullptr;
    uform_cpu_class_t cpu_class = uform_cpu_class_default_k;
    uform_tape_t texts {};
    uform_progress_t progress = nullptr;
    void *progress_context = nullptr;
    uform_text_encode_stats_t *stats = nullptr;

    uform_scalar_t scalar = uform_f32_k; /**< Of the three surfaces that follow. */
    uform_rows_t *embeddings = nullptr;
    uform_rows_tape_t *states = nullptr;
    uform_rows_tape_t *token_vectors = nullptr;

    uform_rows_tape_t *probabilities = nullptr;
    uform_tape_t choices {};
    uint32_t const *temperature_groups = nullptr;

    /**
     *  Rewinds the arena, runs the texts through the network, and writes surfaces and stats if all went well.
     *  Failures are noted on the calling thread: OUT_OF_MEMORY, CANCELLED, what the arena's allocator may cause.
     */
    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept;
};

} // namespace uform
