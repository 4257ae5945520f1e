/**
 *  UForm: ranking of what was encoded, without a model: late interaction, and exact search.
 *
 *  Both verbs block, read the caller's memory where it lies, and write to memory that the caller lends. A score depends
 *  on its two items and on the CPU class alone: not on what else is in the call, nor on the threads.
 */
#ifndef UFORM_RANK_H
#define UFORM_RANK_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What the rows of a matrix hold. */
typedef enum uform_vectors_kind_t {
    uform_vectors_f32_k = 1,
    uform_vectors_bf16_k = 2,
    uform_vectors_i8_k = 3,  /**< Signed bytes. */
    uform_vectors_bits_k = 4 /**< Bits, eight a byte; their order is the caller's. */
} uform_vectors_kind_t;

/** Names such as "F32". Static memory; NULL for a number that is no member. */
UFORM_API char const *uform_vectors_kind_name(int kind);

/** Rows of the same width. */
typedef struct uform_vectors_t {
    void const *data; /**< May be NULL where `count` is 0. */
    size_t count;
    size_t width;     /**< Numbers of a row; of bits, a multiple of 8. From 1 to 65,536. */
    size_t row_bytes; /**< From a row to the next; 0: rows have no gaps. */
    uform_vectors_kind_t kind;
} uform_vectors_t;

/** Arguments of `uform_maxsim`. */
typedef struct uform_maxsim_t {
    uform_executor_t *executor;  /**< NULL: the calling thread. */
    uform_vectors_t queries;     /**< Token vectors of all queries, F32 or BF16, finite. */
    size_t const *query_offsets; /**< [query_count + 1] rows: from 0 on, never decreasing, up to `queries.count`. */
    size_t query_count;
    uform_vectors_t documents;      /**< Of the same width and kind. */
    size_t const *document_offsets; /**< [document_count + 1] */
    size_t document_count;
    /** NULL: every query is compared with every document. Otherwise query `i` with those named by
     *  `candidates[candidate_offsets[i]]` up to `candidates[candidate_offsets[i + 1]]`. */
    size_t const *candidate_offsets;
    int64_t const *candidates;
    float *scores; /**< [query_count, document_count], or one for each candidate. */
} uform_maxsim_t;

/**
 *  Late interaction (O. Khattab and M. Zaharia, ColBERT, 2020): the sum, over a query's vectors, of the largest inner
 *  product with one of the document's. 0 for a query without vectors, minus infinity for a document without any.
 *  Inner products are F32, of BF16 numbers exact ones; their sum is one of F64, rounded once.
 *  Errors: INVALID_ARGUMENT (NULL; offsets or candidates, by item; a width), SHAPE_MISMATCH (widths), UNKNOWN_KIND,
 *  UNSUPPORTED_LAYOUT (a kind that is not taken, kinds that differ, rows that overlap), CONTENDED, OUT_OF_MEMORY.
 */
UFORM_API uform_status_t uform_maxsim(uform_maxsim_t const *arguments);

/** Arguments of `uform_top_k`. */
typedef struct uform_top_k_t {
    uform_executor_t *executor; /**< NULL: the calling thread. */
    uform_vectors_t queries;    /**< F32, I8 or bits. */
    uform_vectors_t corpus;     /**< Of the same width and kind: a block of it, for one that is larger than memory. */
    size_t k;                   /**< Results of a query; at least 1. */
    int64_t first_id;           /**< Of the corpus' row 0; not negative. */
    /** Whether `scores` and `ids` hold the results for earlier blocks, with smaller ids, and are to be merged with. */
    bool merge;
    void *scores; /**< [queries.count, k], best first: F32, and int32_t of I8 and bits. */
    int64_t *ids; /**< [queries.count, k]; -1, with a score of 0, where there are fewer than `k`. */
} uform_top_k_t;

/**
 *  Exact search: the `k` rows with the largest inner product, or of bits with the smallest Hamming distance; of equals
 *  those with the smallest ids. A score that is not a number, or minus infinity, is none. Needs memory for 4 `k`
 *  results a query and thread. Errors: as `uform_maxsim`.
 */
UFORM_API uform_status_t uform_top_k(uform_top_k_t const *arguments);

#ifdef __cplusplus
}
#endif
#endif
