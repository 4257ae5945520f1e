/** One batch of media, with its arguments checked: what all media verbs have in common. */
#pragma once
#include "uform/encode.h"

#include "../core/arena.h"
#include "../core/team.h"
#include "dispatch.h"
#include "media_source.h"

namespace uform {

/** What a call did, as the stats of all modalities need it. */
struct media_tally_t {
    size_t truncated = 0; /**< Items. */
    size_t tokens = 0;
    size_t malformed = 0; /**< Items that were skipped. */
    uint64_t bytes = 0;   /**< Of the items that were not. */
    uint64_t extent = 0;  /**< Frames or samples. */
};

/** Surfaces that are NULL are left out. */
struct media_call_t {
    uform_model_t const *model = nullptr;
    uform_cpu_class_t cpu_class = uform_cpu_class_default_k;
    modality_t modality = modality_t::image_k;
    size_t count = 0;
    uform_item_fault_t *faults = nullptr;
    uform_progress_t progress = nullptr;
    void *progress_context = nullptr;

    uform_scalar_t scalar = uform_f32_k;
    uform_rows_t *embeddings = nullptr;
    uform_rows_tape_t *states = nullptr;
    uform_rows_tape_t *token_vectors = nullptr;

    /**
     *  Rewinds the arena, runs the items through the network, and writes the surfaces if all went well. Failures are
     *  noted on the calling thread: those of items, OUT_OF_MEMORY, CANCELLED, what the arena's allocator may cause.
     */
    uform_status_t run(media_source_t &source, arena_hold_t const &arena, team_t &team,
                       media_tally_t &tally) const noexcept;
};

/** Limits with the defaults in the place of zeros. */
limits_t limits_of(uform_media_limits_t const &limits) noexcept;

/** Checks what all media verbs' arguments have in common, and takes it over. UNSUPPORTED where the model takes no such
 * media. */
template <typename arguments_type_>
uform_status_t read_arguments(uform_model_t const *model, arguments_type_ const *arguments, modality_t modality,
                              media_call_t &call) noexcept {
    constexpr char const *plurals[modalities_k] = {"texts", "pictures", "videos", "recordings"};
    if (!model) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "model: must not be NULL");
    if (!arguments) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arguments: must not be NULL");
    uform_executor_t *const executor = arguments->executor;
    if (uform_status_t const status = check_receiver(executor, arguments->completion, arguments->arena)) return status;
    call.model = model;
    call.modality = modality;
    call.progress = arguments->progress;
    call.progress_context = arguments->progress_context;
    call.embeddings = arguments->embeddings;
    call.states = arguments->states;
    call.token_vectors = arguments->token_vectors;
    if (uform_status_t const status = resolve_scalar(arguments->outputs_scalar, call.scalar)) return status;
    if (!model->patch_embeddings[size_t(modality)])
        return fail(uform_unsupported_k, UFORM_NO_ITEM, "model: its checkpoint takes no %s", plurals[size_t(modality)]);
    if (call.token_vectors && !model->token_head)
        return fail(uform_unsupported_k, UFORM_NO_ITEM, "token_vectors: the model has no token head");
    return resolve_cpu_class(*model, executor, call.cpu_class);
}

} // namespace uform
