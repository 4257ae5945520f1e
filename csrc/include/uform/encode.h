/**
 *  UForm: encoding. One verb per form of input, each a batch. Every verb takes the model and one argument structure
 *  that starts with the executor and the completion; start from `{0}` and fill in what you need.
 *
 *  Order of the checks: arguments, then the arena (CONTENDED), then the executor (CONTENDED); a refused call changes
 *  nothing. After that the arena is rewound. A call that fails later, by CANCELLED for one, publishes nothing.
 *  With a completion, the two CONTENDED refusals are reported by the outcome.
 */
#ifndef UFORM_ENCODE_H
#define UFORM_ENCODE_H

#include "model.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a call of `uform_text_encode` or `uform_text_choose` did. */
typedef struct uform_text_encode_stats_t {
    size_t truncated_items; /**< Texts of more than `context` tokens, cut at it. */
    size_t encoded_tokens;  /**< Tokens that went through the network. */
} uform_text_encode_stats_t;

/** Arguments of `uform_text_encode`. */
typedef struct uform_text_encode_t {
    uform_executor_t *executor;   /**< NULL: the calling thread. */
    uform_outcome_t **completion; /**< NULL: block. Otherwise receives an outcome to be freed; needs an executor. */
    uform_arena_t *arena;         /**< Where outputs land. */
    uform_tape_t texts;           /**< UTF-8 by custom, any bytes in fact: a byte is a token. */
    uform_scalar_t outputs_scalar;
    uform_progress_t progress; /**< May be NULL. */
    void *progress_context;
    /* Outputs: what is NULL is left out, and not computed. A deferred call writes them when it succeeds. */
    uform_rows_t *embeddings;         /**< (count, dimensions), of unit length; zeros for an empty text. */
    uform_rows_tape_t *states;        /**< (tokens, hidden), after the final norm. */
    uform_rows_tape_t *token_vectors; /**< (tokens, token_width), of unit length. UNSUPPORTED without a token head. */
    uform_text_encode_stats_t *stats; /**< Overwritten by a call that succeeds. */
} uform_text_encode_t;

/**
 *  Encodes texts. Blocks, or returns DEFERRED where a completion is given.
 *  Errors: INVALID_ARGUMENT (tape, by item; a NULL that is needed), UNKNOWN_KIND (scalar), UNSUPPORTED (token head),
 *  CONFIG_MISMATCH (model and executor pinned to different classes), CONTENDED, CANCELLED, OUT_OF_MEMORY.
 */
UFORM_API uform_status_t uform_text_encode(uform_model_t const *model, uform_text_encode_t const *arguments);

/** Arguments of `uform_text_choose`. */
typedef struct uform_text_choose_t {
    uform_executor_t *executor;
    uform_outcome_t **completion;
    uform_arena_t *arena;
    uform_tape_t texts;
    uform_tape_t choices;               /**< Item `i`: the legal bytes of text `i`, at least one, no byte twice. */
    uint32_t const *temperature_groups; /**< A question type per text, or NULL: all of group 0. */
    size_t temperature_groups_count;    /**< Must be the number of texts where `temperature_groups` is given. */
    uform_progress_t progress;
    void *progress_context;
    uform_rows_tape_t *probabilities; /**< (choices, 1) of F32: item `i` sums to one, in the order of its choices. */
    uform_text_encode_stats_t *stats; /**< May be NULL. A text is truncated at `context - 1` tokens here. */
} uform_text_choose_t;

/**
 *  Scores each text's choices through one forward pass. Blocks, or returns DEFERRED where a completion is given.
 *  Errors: as `uform_text_encode`; SHAPE_MISMATCH (as many choices or groups as texts), INVALID_ARGUMENT (an empty or
 *  repeating set of choices, a group out of range, by item), UNSUPPORTED (a model without the byte decoder).
 */
UFORM_API uform_status_t uform_text_choose(uform_model_t const *model, uform_text_choose_t const *arguments);

#ifdef __cplusplus
}
#endif
#endif
