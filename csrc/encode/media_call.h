/** One batch of media, with its arguments checked: what all media verbs have in common. */
#pragma once
#include "uform/encode.h"

#include "../core/arena.h"
#include "../core/tape.h"
#include "../core/team.h"
#include "../media/mel.h"
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

    void write(uform_image_encode_stats_t &stats) const noexcept { stats = {truncated, tokens, malformed, bytes}; }
    void write(uform_video_encode_stats_t &stats) const noexcept {
        stats = {truncated, tokens, malformed, bytes, extent};
    }
    void write(uform_audio_encode_stats_t &stats) const noexcept {
        stats = {truncated, tokens, malformed, bytes, static_cast<double>(extent) / mel_sample_rate_k};
    }
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
     *  Rewinds the arena, runs the items through the network, and writes the surfaces and the stats, which may be NULL,
     *  if all went well. Failures are noted on the calling thread: those of items, OUT_OF_MEMORY, CANCELLED, what the
     *  arena's allocator may cause. `name` is the argument's that the source reads.
     */
    template <typename stats_type_>
    uform_status_t run(media_source_t &&source, char const *name, arena_hold_t const &arena, team_t &team,
                       stats_type_ *stats) const noexcept {
        media_tally_t tally;
        source.name = name;
        uform_status_t const status = run(source, arena, team, tally);
        if (!status && stats) tally.write(*stats);
        return status;
    }

  private:
    uform_status_t run(media_source_t &source, arena_hold_t const &arena, team_t &team,
                       media_tally_t &tally) const noexcept;
};

/**
 *  Checks what all media verbs' arguments have in common, and takes it over. UNSUPPORTED where the model takes no such
 *  media.
 */
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

/** Limits with the defaults in the place of zeros. */
limits_t limits_of(uform_media_limits_t const &limits) noexcept;

/** A call over files, and the decoders that it needs. */
template <typename codecs_type_> struct media_files_call_t : media_call_t {
    uform_tape_t files {};
    limits_t limits;
    codecs_type_ const *codecs = nullptr;
};

/** `read_arguments` of a verb that takes files; `load` finds their decoders, or fails with UNSUPPORTED. */
template <typename arguments_type_, typename codecs_type_>
uform_status_t read_files(uform_model_t const *model, arguments_type_ const *arguments, modality_t modality,
                          uform_status_t (*load)(codecs_type_ const *&) noexcept,
                          media_files_call_t<codecs_type_> &call) noexcept {
    if (uform_status_t const status = read_arguments(model, arguments, modality, call)) return status;
    if (uform_status_t const status = check_tape(arguments->files, "files")) return status;
    if (uform_status_t const status = load(call.codecs)) return status;
    call.files = arguments->files;
    call.count = arguments->files.count;
    call.limits = limits_of(arguments->limits);
    call.faults = arguments->faults;
    return uform_success_k;
}

} // namespace uform
