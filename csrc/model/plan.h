/** How a batch is shared out: groups of neighbouring segments, and which of them all threads work on together. */
#pragma once
#include <cstddef>

#include "forward.h"

namespace uform {

/** With so many pieces of work a thread, the last one to finish does not keep the others waiting for long. */
constexpr size_t groups_per_thread_k = 4;

/** Groups, largest first: those that all threads share, then those that one thread takes each. */
struct plan_t {
    group_t *groups = nullptr;
    size_t count = 0;
    size_t shared = 0; /**< How many of them all threads work on together. */
};

/**
 *  Plans a batch for so many threads, into its `groups`. Groups have about `group_tokens` tokens. Segments that alone
 * are a good part of a thread's fair share are shared; so is everything else where there are too few groups to keep all
 * threads busy to the end.
 */
plan_t plan(config_t const &config, batch_t const &batch, size_t threads, size_t group_tokens) noexcept;

} // namespace uform
