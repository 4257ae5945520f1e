/**
 *  UForm: types that every other header shares: statuses, enumerations, tapes, executors, arenas and outcomes.
 *
 *  Rules that hold for the whole library:
 *  - A function that can fail returns a `uform_status_t`: 0 is success, 1 is deferred, negative numbers are failures.
 *    What it makes goes out through a pointer, which a failure leaves as it was.
 *  - A failure leaves a message on the calling thread, read with `uform_last_failure`; that of a deferred call is read
 *    from its outcome with `uform_outcome_failure`.
 *  - Handles are made by `_init` or `_load` functions and released by the `_free` function of their type, which takes
 *    NULL as well. Unless said otherwise, a handle may be used from any thread, and freed once nothing else uses it.
 *  - Zero in an options structure stands for the default, so `{0}` is always a valid start.
 */
#ifndef UFORM_TYPES_H
#define UFORM_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__) || defined(__clang__)
#define UFORM_API __attribute__((visibility("default")))
#else
#define UFORM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define UFORM_VERSION_MAJOR 0
#define UFORM_VERSION_MINOR 1
#define UFORM_VERSION_PATCH 0

/** The version of the library that is loaded, as "major.minor.patch". Never NULL, static memory. */
UFORM_API char const *uform_version(void);

/** What a call came to. Failures are fixed numbers: they never change their meaning between versions. */
typedef enum uform_status_t {
    uform_success_k = 0,
    uform_deferred_k = 1,            /**< Submitted; the outcome will tell. */
    uform_out_of_memory_k = -1,      /**< Host or device memory ran out. */
    uform_shape_mismatch_k = -2,     /**< Sizes of arguments do not fit each other or the model. */
    uform_unsupported_layout_k = -3, /**< Memory layout or file format that is not taken. */
    uform_unknown_kind_k = -4,       /**< A number that is no member of its enumeration. */
    uform_io_k = -5,                 /**< The operating system refused a file. */
    uform_device_k = -6,             /**< A device failed, or memory of the wrong device was named. */
    uform_malformed_k = -7,          /**< A file's or buffer's contents are broken. */
    uform_internal_k = -8,           /**< A fault of the library itself. */
    uform_config_mismatch_k = -9,    /**< Two configurations that must agree do not. */
    uform_contended_k = -10,         /**< The executor or the arena serves another call, or the arena is pinned. */
    uform_cancelled_k = -11,         /**< The progress handler stopped the call. */
    uform_unsupported_k = -12,       /**< The hardware, build or model cannot do it. */
    uform_invalid_argument_k = -13   /**< An argument that can never be right. */
} uform_status_t;

/** Scalars of outputs and of weights. Zero is the default: F32 for outputs, BF16 for weights. */
typedef enum uform_scalar_t {
    uform_scalar_default_k = 0,
    uform_f32_k = 1,  /**< IEEE 754 binary32. */
    uform_bf16_k = 2, /**< The upper half of a binary32, rounded to nearest even. */
    uform_e4m3_k = 3  /**< OCP 8-bit floating point, E4M3: largest number 448, no infinities; saturating. */
} uform_scalar_t;

/** What an executor's threads do between calls. Zero is the default, CHILLING. */
typedef enum uform_mood_t {
    uform_mood_default_k = 0,
    uform_mood_grinding_k = 1, /**< Spin for the next call: shortest latency, whole cores taken. */
    uform_mood_chilling_k = 2, /**< Spin for some microseconds, then sleep until woken. */
    uform_mood_parked_k = 3    /**< Sleep at once: no processor time at all between calls. */
} uform_mood_t;

/** Instruction sets that kernels are written for, from the least to the most capable of a family. Zero: derive. */
typedef enum uform_cpu_class_t {
    uform_cpu_class_default_k = 0,
    uform_cpu_class_serial_k = 1,   /**< Plain C++: the reference for the others. */
    uform_cpu_class_haswell_k = 2,  /**< AVX2, FMA, F16C, POPCNT. */
    uform_cpu_class_skylake_k = 3,  /**< AVX-512 F, BW, DQ, VL. */
    uform_cpu_class_genoa_k = 4,    /**< SKYLAKE and AVX512-BF16, VBMI, VNNI, VPOPCNTDQ. */
    uform_cpu_class_sapphire_k = 5, /**< GENOA and AMX-TILE, AMX-BF16. */
    uform_cpu_class_neon_k = 6      /**< Arm NEON. */
} uform_cpu_class_t;

/** Generations of graphics processors that device code distinguishes. Zero: derive. */
typedef enum uform_gpu_class_t {
    uform_gpu_class_default_k = 0,
    uform_gpu_class_volta_k = 1,
    uform_gpu_class_ampere_k = 2,
    uform_gpu_class_hopper_k = 3,
    uform_gpu_class_blackwell_k = 4,
    uform_gpu_class_cdna2_k = 5,
    uform_gpu_class_cdna3_k = 6
} uform_gpu_class_t;

/** What an item is. Flags: a set of them is their sum. */
typedef enum uform_modality_t {
    uform_text_k = 1,
    uform_image_k = 2,
    uform_video_k = 4,
    uform_audio_k = 8
} uform_modality_t;

/** Names such as "OUT_OF_MEMORY". Static memory; NULL for a number that is no member, the zero defaults included. */
UFORM_API char const *uform_status_name(int status);
UFORM_API char const *uform_scalar_name(int scalar);
UFORM_API char const *uform_mood_name(int mood);
UFORM_API char const *uform_cpu_class_name(int cpu_class);
UFORM_API char const *uform_gpu_class_name(int gpu_class);
UFORM_API char const *uform_modality_name(int modality);

/** Bytes of one scalar; 0 for a number that is no member. */
UFORM_API size_t uform_scalar_size(int scalar);

/** `item` of a failure that no item is at fault for. */
#define UFORM_NO_ITEM SIZE_MAX

/** Why a call failed. */
typedef struct uform_failure_t {
    uform_status_t status; /**< SUCCESS where nothing failed yet. */
    size_t item;           /**< Index of the item at fault, or `UFORM_NO_ITEM`. */
    char message[384];     /**< One sentence, NUL-terminated: which argument or item, and why. */
} uform_failure_t;

/** The last failure of a call that the calling thread made; those of deferred calls are in their outcomes. */
UFORM_API void uform_last_failure(uform_failure_t *failure);

/** True where this machine, and the operating system, can run kernels of the class. */
UFORM_API bool uform_cpu_class_supported(int cpu_class);
/** The class that is fastest on this machine: what a default of zero derives. Detected once. */
UFORM_API uform_cpu_class_t uform_cpu_class_derive(void);

/** Devices this build can drive and this process can see. 0 without any. */
UFORM_API size_t uform_gpu_device_count(void);

/**
 *  Items of any length, one after another in memory, Arrow's layout: item `i` is the bytes from `offsets[i]` up to
 *  `offsets[i + 1]`. Lent for the duration of the call (a deferred one: until its outcome is final), never copied.
 *  A call refuses with INVALID_ARGUMENT, naming the item, what does not start at 0, decreases, or passes `length`.
 *  With a `count` of 0, `offsets` may be NULL or point to a single 0.
 */
typedef struct uform_tape_t {
    void const *data;      /**< May be NULL where `length` is 0. */
    size_t length;         /**< Bytes that `data` has. */
    size_t const *offsets; /**< `count + 1` numbers. */
    size_t count;          /**< Items. */
} uform_tape_t;

/**
 *  Called with the number of items that are done, rising to `total`, by one thread at a time, on the threads that run
 *  the call. Returning false stops the call, which then fails with CANCELLED. It may not free what the call uses;
 *  a call on the same executor or arena from inside fails with CONTENDED.
 */
typedef bool (*uform_progress_t)(void *context, size_t completed, size_t total);

/* ---- Outcomes ---- */

/** A deferred call. */
typedef struct uform_outcome_t uform_outcome_t;

/** DEFERRED while the call runs, then its final status. Never blocks. */
UFORM_API uform_status_t uform_outcome_status(uform_outcome_t const *outcome);
/** Blocks until the call is final, and returns its status. May be called by many threads, and more than once. */
UFORM_API uform_status_t uform_outcome_wait(uform_outcome_t *outcome);
/** The call's failure; status SUCCESS, or DEFERRED while it runs, with an empty message, where there is none. */
UFORM_API void uform_outcome_failure(uform_outcome_t const *outcome, uform_failure_t *failure);
/** Waits for the call, then releases the outcome. NULL does nothing. */
UFORM_API void uform_outcome_free(uform_outcome_t *outcome);

/* ---- Executors ---- */

/** Threads that calls run on, apart from any model. One call at a time: see CONTENDED. */
typedef struct uform_executor_t uform_executor_t;

/** Options of `uform_executor_init_ram`. */
typedef struct uform_executor_ram_t {
    size_t threads;               /**< 0: as many as this process may run on (affinity, cgroup quota). */
    size_t const *memory_domains; /**< NUMA nodes to run on, copied; NULL: wherever the process may run. */
    size_t memory_domains_count;  /**< Entries of `memory_domains`. */
    uform_cpu_class_t cpu_class;  /**< Pin; UNSUPPORTED where this machine cannot run it. */
} uform_executor_ram_t;

/**
 *  Makes an executor of exactly so many host threads. A blocking call's own thread takes the place of one of them.
 *  `options` may be NULL. After a fork, the child's first call makes its threads anew.
 *  Errors: UNKNOWN_KIND, UNSUPPORTED, INVALID_ARGUMENT (a domain that does not exist or has no core), OUT_OF_MEMORY.
 */
UFORM_API uform_status_t uform_executor_init_ram(uform_executor_ram_t const *options, uform_executor_t **executor);
/** Makes an executor of device streams. This build drives no device: UNSUPPORTED, or DEVICE naming the missing one. */
UFORM_API uform_status_t uform_executor_init_vram(size_t const *devices, size_t count, size_t scratch_limit,
                                                  uform_gpu_class_t gpu_class, uform_executor_t **executor);
/** Threads that a call runs on at the most. */
UFORM_API size_t uform_executor_threads(uform_executor_t const *executor);
/** The class it is pinned to, or zero. */
UFORM_API uform_cpu_class_t uform_executor_cpu_class(uform_executor_t const *executor);
/** True while a call holds it. */
UFORM_API bool uform_executor_busy(uform_executor_t const *executor);
/** Waits until no call holds the executor, then applies the mood. UNKNOWN_KIND for a number that is none. */
UFORM_API uform_status_t uform_executor_drain(uform_executor_t *executor, uform_mood_t mood);
/** Waits for the call that holds it, ends the threads, releases the scratch. NULL does nothing. */
UFORM_API void uform_executor_free(uform_executor_t *executor);

/* ---- Arenas ---- */

/** Memory that outputs land in: one growable block aligned to 64 bytes, rewound by each call that names it. */
typedef struct uform_arena_t uform_arena_t;

/**
 *  Memory of the caller's framework. `allocate` returns `bytes` bytes aligned to 64, or NULL where there is none.
 *  Over an allocator, each call takes a new block of just the size it needs and then gives the last one back with
 *  `free`; a framework that counts references can thus keep the last call's outputs alive.
 *  Both are called on whatever thread runs the call; `handle` is passed through.
 */
typedef struct uform_allocator_t {
    void *(*allocate)(void *handle, size_t bytes);
    void (*free)(void *handle, void *pointer, size_t bytes);
    void *handle;
} uform_allocator_t;

/** An arena where the executor computes; NULL: host memory for the calling thread. Allocates nothing yet. */
UFORM_API uform_status_t uform_arena_init(uform_executor_t *executor, uform_arena_t **arena);
/** An arena over the caller's memory. The allocator is copied; its functions must outlive the arena. */
UFORM_API uform_status_t uform_arena_init_over(uform_allocator_t const *allocator, uform_arena_t **arena);
/** Counts the rewinds: outputs of a call are those of the generation that the arena has when the call is final. */
UFORM_API uint64_t uform_arena_generation(uform_arena_t const *arena);
/** Bytes that it holds now. */
UFORM_API size_t uform_arena_capacity(uform_arena_t const *arena);
/** True while a call holds it. */
UFORM_API bool uform_arena_busy(uform_arena_t const *arena);
/** Exports that have not been released. */
UFORM_API size_t uform_arena_pins(uform_arena_t const *arena);
/**
 *  Takes a hold on the outputs of that generation: until it is released, calls that name the arena fail with
 *  CONTENDED. INVALID_ARGUMENT where the arena has been rewound since.
 */
UFORM_API uform_status_t uform_arena_pin(uform_arena_t *arena, uint64_t generation);
/** Releases a hold. From any thread. */
UFORM_API void uform_arena_unpin(uform_arena_t *arena);
/** Releases the memory, once the call that holds it is final; a pinned arena's lives until the last unpin. */
UFORM_API void uform_arena_free(uform_arena_t *arena);

/** A matrix in an arena: `rows` rows of `columns` scalars, `row_bytes` bytes apart, no gaps. */
typedef struct uform_rows_t {
    void *data; /**< Aligned to 64 bytes. Valid until the arena's next rewind. */
    size_t rows;
    size_t columns;
    size_t row_bytes;
    uform_scalar_t scalar;
    uint64_t generation; /**< That the arena had: what `uform_arena_pin` asks for. */
} uform_rows_t;

/** Rows of items of any length: item `i` spans rows `offsets[i]` up to `offsets[i + 1]`. */
typedef struct uform_rows_tape_t {
    uform_rows_t rows;
    size_t const *offsets; /**< `count + 1` numbers, in the arena too. */
    size_t count;          /**< Items. */
} uform_rows_tape_t;

#ifdef __cplusplus
}
#endif
#endif
