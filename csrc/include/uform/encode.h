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

/* ---- Media ---- */

/**
 *  What an item may take at the most; 0 stands for the default. Checked against an item's headers before memory is
 *  asked for: what is over a limit is MALFORMED, with the limit in the message.
 */
typedef struct uform_media_limits_t {
    uint64_t pixels;  /**< Of a picture, or of a video's frame. Default 2^28. */
    uint64_t seconds; /**< Of a video or a recording. Default 14,400, four hours. */
    uint64_t bytes;   /**< Of memory while an item is decoded. Default 2^31. */
} uform_media_limits_t;

/** Why an item was skipped. */
typedef struct uform_item_fault_t {
    uform_status_t status; /**< MALFORMED or UNSUPPORTED_LAYOUT; SUCCESS for an item that was encoded. */
    char message[256];     /**< NUL-terminated; empty for an item that was encoded. */
} uform_item_fault_t;

/** What a call of `uform_image_encode` or `uform_image_encode_pixels` did. */
typedef struct uform_image_encode_stats_t {
    size_t truncated_items; /**< Always 0: a picture is resized until it fits. */
    size_t encoded_tokens;  /**< Tokens that went through the network. */
    size_t malformed_items; /**< Pictures that were skipped; see `faults`. */
    uint64_t decoded_bytes; /**< Of the files, or of the pixels, that were encoded. */
} uform_image_encode_stats_t;

/** What a call of `uform_video_encode` did. */
typedef struct uform_video_encode_stats_t {
    size_t truncated_items; /**< Videos with more frames than the model takes, cut there. */
    size_t encoded_tokens;  /**< Tokens that went through the network. */
    size_t malformed_items; /**< Videos that were skipped; see `faults`. */
    uint64_t decoded_bytes; /**< Of the files that were encoded. */
    size_t encoded_frames;  /**< Frames that were sampled. */
} uform_video_encode_stats_t;

/** What a call of `uform_audio_encode` or `uform_audio_encode_samples` did. */
typedef struct uform_audio_encode_stats_t {
    size_t truncated_items; /**< Recordings of more than `context` tokens, cut there. */
    size_t encoded_tokens;  /**< Tokens that went through the network. */
    size_t malformed_items; /**< Recordings that were skipped; see `faults`. */
    uint64_t decoded_bytes; /**< Of the files, or of the samples, that were encoded. */
    double encoded_seconds; /**< Of sound. */
} uform_audio_encode_stats_t;

/** Arguments of `uform_image_encode`. */
typedef struct uform_image_encode_t {
    uform_executor_t *executor;   /**< NULL: the calling thread. */
    uform_outcome_t **completion; /**< NULL: block. */
    uform_arena_t *arena;         /**< Where outputs land. */
    uform_tape_t files;           /**< JPEG, PNG or WebP, whole files; told apart by their bytes. */
    uform_scalar_t outputs_scalar;
    uform_media_limits_t limits;
    uform_item_fault_t *faults; /**< [count], or NULL: the first item that cannot be decoded fails the call. */
    uform_progress_t progress;  /**< May be NULL. */
    void *progress_context;
    uform_rows_t *embeddings;          /**< (count, dimensions), of unit length; zeros for an item that was skipped. */
    uform_rows_tape_t *states;         /**< (tokens, hidden); an item that was skipped has none. */
    uform_rows_tape_t *token_vectors;  /**< (tokens, token_width). */
    uform_image_encode_stats_t *stats; /**< May be NULL. */
} uform_image_encode_t;

/**
 *  Decodes and encodes pictures, as a viewer would show them: upright, over white, the first frame of an animation.
 *  Errors: as `uform_text_encode`; MALFORMED (broken, cut short, or over a limit) and UNSUPPORTED_LAYOUT (another
 *  format), by item; UNSUPPORTED (a model that takes no pictures, or no library to decode them on this machine).
 *  With `faults`, which is written by a call that succeeds, both faults of items skip them instead.
 */
UFORM_API uform_status_t uform_image_encode(uform_model_t const *model, uform_image_encode_t const *arguments);

/** A picture in memory, [height, width, 3] of sRGB, row after row without gaps. */
typedef struct uform_pixels_t {
    uint8_t const *data;
    size_t height;
    size_t width;
} uform_pixels_t;

/** Arguments of `uform_image_encode_pixels`; what is not commented is as in `uform_image_encode_t`. */
typedef struct uform_image_encode_pixels_t {
    uform_executor_t *executor;
    uform_outcome_t **completion;
    uform_arena_t *arena;
    uform_pixels_t const *pixels; /**< [count], read where they lie; each may have its own size. */
    size_t count;
    uform_scalar_t outputs_scalar;
    uform_progress_t progress;
    void *progress_context;
    uform_rows_t *embeddings;
    uform_rows_tape_t *states;
    uform_rows_tape_t *token_vectors;
    uform_image_encode_stats_t *stats;
} uform_image_encode_pixels_t;

/** Encodes pictures. Errors: as `uform_image_encode`; SHAPE_MISMATCH, by item, where a side is 0 or above 2^30. */
UFORM_API uform_status_t uform_image_encode_pixels(uform_model_t const *model,
                                                   uform_image_encode_pixels_t const *arguments);

/** Arguments of `uform_video_encode`; what is not commented is as in `uform_image_encode_t`. */
typedef struct uform_video_encode_t {
    uform_executor_t *executor;
    uform_outcome_t **completion;
    uform_arena_t *arena;
    uform_tape_t files; /**< MP4 or WebM, whole files. */
    uform_scalar_t outputs_scalar;
    uform_media_limits_t limits;
    uform_item_fault_t *faults;
    uform_progress_t progress;
    void *progress_context;
    uform_rows_t *embeddings;
    uform_rows_tape_t *states; /**< Tubelet after tubelet, row by row. */
    uform_rows_tape_t *token_vectors;
    uform_video_encode_stats_t *stats;
} uform_video_encode_t;

/** Decodes and encodes videos: frames at the model's rate by presentation time, upright. Errors: as
 * `uform_image_encode`. */
UFORM_API uform_status_t uform_video_encode(uform_model_t const *model, uform_video_encode_t const *arguments);

/** Arguments of `uform_audio_encode`; what is not commented is as in `uform_image_encode_t`. */
typedef struct uform_audio_encode_t {
    uform_executor_t *executor;
    uform_outcome_t **completion;
    uform_arena_t *arena;
    uform_tape_t files; /**< WAV, FLAC, MP3 or Opus, whole files. */
    uform_scalar_t outputs_scalar;
    uform_media_limits_t limits;
    uform_item_fault_t *faults;
    uform_progress_t progress;
    void *progress_context;
    uform_rows_t *embeddings;
    uform_rows_tape_t *states;
    uform_rows_tape_t *token_vectors;
    uform_audio_encode_stats_t *stats;
} uform_audio_encode_t;

/**
 *  Decodes and encodes recordings: the mean of their channels, resampled to the model's rate, without the encoder's
 *  delay and padding. One without a sample has the zero embedding. Errors: as `uform_image_encode`.
 */
UFORM_API uform_status_t uform_audio_encode(uform_model_t const *model, uform_audio_encode_t const *arguments);

/** A recording in memory, mono, in [-1, 1]. */
typedef struct uform_samples_t {
    float const *data;
    size_t count;
} uform_samples_t;

/** Arguments of `uform_audio_encode_samples`; what is not commented is as in `uform_image_encode_t`. */
typedef struct uform_audio_encode_samples_t {
    uform_executor_t *executor;
    uform_outcome_t **completion;
    uform_arena_t *arena;
    uform_samples_t const *samples; /**< [count], read where they lie. */
    size_t count;
    uint32_t sample_rate; /**< Hz, of all of them; from 1,000 to 768,000. */
    uform_scalar_t outputs_scalar;
    uform_progress_t progress;
    void *progress_context;
    uform_rows_t *embeddings;
    uform_rows_tape_t *states;
    uform_rows_tape_t *token_vectors;
    uform_audio_encode_stats_t *stats;
} uform_audio_encode_samples_t;

/**
 *  Encodes recordings, resampled to the model's rate where theirs is another. Errors: as `uform_audio_encode`;
 *  INVALID_ARGUMENT (the rate), MALFORMED, by item, where a sample is infinite or not a number.
 */
UFORM_API uform_status_t uform_audio_encode_samples(uform_model_t const *model,
                                                    uform_audio_encode_samples_t const *arguments);

#ifdef __cplusplus
}
#endif
#endif
