/** What ranking's verbs have in common: checks of matrices, threads, queries in the layout that kernels read. */
#pragma once
#include <cstddef>

#include "uform/rank.h"

#include "../core/executor.h"
#include "../core/serial_team.h"

namespace uform {

/** Bytes of a row's numbers. */
size_t vector_bytes(uform_vectors_t const &vectors) noexcept;

/** Checks a matrix and fills in its `row_bytes`. `name` is the argument's. */
uform_status_t check_vectors(uform_vectors_t &vectors, char const *name) noexcept;

/** Checks that two matrices have one width and one kind. */
uform_status_t check_pair(uform_vectors_t const &queries, uform_vectors_t const &others, char const *name) noexcept;

/** Checks offsets [count + 1] of a matrix' rows. */
uform_status_t check_offsets(size_t const *offsets, size_t count, size_t rows, char const *name) noexcept;

inline std::byte const *row_of(uform_vectors_t const &vectors, size_t row) noexcept {
    return static_cast<std::byte const *>(vectors.data) + row * vectors.row_bytes;
}

/**
 *  Packs `count` rows, at most `lanes`, from `first` on, as kernels/score/score.h has it for `kind`; lanes without a
 *  row are zero. BF16 may be packed as F32, and F32 rounded to BF16. `packed`: `packed_bytes` bytes, aligned to 64.
 */
void pack_queries(uform_vectors_t const &vectors, size_t first, size_t count, size_t lanes, uform_vectors_kind_t kind,
                  void *packed) noexcept;
size_t packed_bytes(size_t width, size_t lanes, uform_vectors_kind_t kind) noexcept;

/** The threads of a call: an executor's, held until the end of the call, or the calling one. */
class call_threads_t {
  public:
    /** CONTENDED, or OUT_OF_MEMORY, noted. */
    uform_status_t acquire(uform_executor_t *executor) noexcept {
        executor_ = executor;
        return executor ? hold_.acquire(*executor, false) : uform_success_k;
    }
    team_t &team() noexcept { return executor_ ? hold_.team() : serial_; }
    uform_cpu_class_t cpu_class() const noexcept {
        bool const is_pinned = executor_ && executor_->cpu_class != uform_cpu_class_default_k;
        return is_pinned ? executor_->cpu_class : uform_cpu_class_derive();
    }

  private:
    uform_executor_t *executor_ = nullptr;
    executor_hold_t hold_;
    serial_team_t serial_;
};

} // namespace uform
