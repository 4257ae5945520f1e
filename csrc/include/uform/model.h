/**
 *  UForm: models. A model is a checkpoint in memory: immutable once loaded, shared by any number of threads,
 *  executors and calls. The checkpoint's format is described in csrc/model/FORMAT.md.
 */
#ifndef UFORM_MODEL_H
#define UFORM_MODEL_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct uform_model_t uform_model_t;

/** What a model is. */
typedef struct uform_model_description_t {
    size_t dimensions;                /**< Scalars of an embedding. */
    size_t context;                   /**< Tokens of an item at the most; longer ones are truncated. */
    uform_scalar_t quantization;      /**< BF16 or E4M3. */
    size_t memory_usage;              /**< Bytes that the loaded model holds. */
    uform_cpu_class_t cpu_class;      /**< Class its calls run as; zero for a model on devices. */
    bool cpu_class_pinned;            /**< Whether that was asked for, or derived. */
    uform_gpu_class_t gpu_class;      /**< Zero for a model in host memory. */
    size_t token_width;               /**< Scalars of a token vector; 0 without a token head. */
    size_t choice_temperature_groups; /**< Question types of the byte decoder; 0 without one. */
    size_t depth;                     /**< Blocks. */
    size_t hidden;                    /**< Scalars of a token's state. */
    size_t head_dimension;            /**< Scalars of an attention head. */
    size_t parameters;                /**< Numbers that were trained. */
    unsigned modalities;              /**< What it takes: a set of `uform_modality_t`, text always. */
    unsigned trained_modalities;      /**< What its weights were trained on, as the checkpoint says. */
} uform_model_description_t;

/** Options of the loads to host memory. Start from `{0}`. */
typedef struct uform_model_load_ram_t {
    uform_executor_t *executor;  /**< Threads that the load runs on; NULL: the calling thread. */
    uform_scalar_t quantization; /**< BF16 as stored (default), or E4M3 with a scale per output row. */
    uform_cpu_class_t cpu_class; /**< Pin; UNSUPPORTED where this machine cannot run it. */
    uform_progress_t progress;   /**< Called with the tensors that are done; may be NULL. */
    void *progress_context;
} uform_model_load_ram_t;

/**
 *  Loads a safetensors checkpoint of format 1 from a file. `options` may be NULL.
 *  Errors: IO (path), MALFORMED (not safetensors, truncated, hostile, a weight that is not finite), UNSUPPORTED
 * (unknown format number, quantization to F32, CPU class), CONFIG_MISMATCH (a configuration that no model can have, a
 * tensor of no part of it), SHAPE_MISMATCH (missing tensor or wrong shape, by name), UNKNOWN_KIND (scalar),
 * INVALID_ARGUMENT (NULL), OUT_OF_MEMORY, CONTENDED (executor), CANCELLED. A call that fails leaves `model` as it was.
 */
UFORM_API uform_status_t uform_model_load_ram(char const *path, uform_model_load_ram_t const *options,
                                              uform_model_t **model);
/** The same from memory, which is not needed any more once the call returns. */
UFORM_API uform_status_t uform_model_load_ram_buffer(void const *data, size_t length,
                                                     uform_model_load_ram_t const *options, uform_model_t **model);
/** What the model is. */
UFORM_API void uform_model_describe(uform_model_t const *model, uform_model_description_t *description);
/** Releases the model once the calls that use it are final. NULL does nothing. */
UFORM_API void uform_model_free(uform_model_t *model);

#ifdef __cplusplus
}
#endif
#endif
