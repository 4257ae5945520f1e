/** How every verb's call is run: on the calling thread, on an executor, or deferred to one. */
#pragma once
#include <memory>
#include <new>
#include <utility>

#include "uform/types.h"

#include "../core/arena.h"
#include "../core/executor.h"
#include "../core/failure.h"
#include "../core/kind.h"
#include "../core/outcome.h"
#include "../core/team.h"
#include "../model/model.h"

namespace uform {

/** A call that was submitted, with all that it holds; the leader deletes it. */
template <typename call_type_> struct deferred_call_t {
    call_type_ call;
    arena_hold_t arena;
    executor_hold_t executor;
    uform_outcome_t *outcome;

    static void run(void *context) noexcept {
        std::unique_ptr<deferred_call_t> self {static_cast<deferred_call_t *>(context)};
        uform_status_t const status = self->call.run(self->arena, self->executor.team());
        uform_outcome_t *const outcome = self->outcome;
        // Who waited may start the next call at once, so what this one holds is given back before it is final.
        self.reset();
        outcome->finish(status == uform_success_k ? uform_failure_t {uform_success_k, UFORM_NO_ITEM, {}}
                                                  : last_failure());
    }
};

/** What every verb asks of its receiver and of its arena. */
inline uform_status_t check_receiver(uform_executor_t const *executor, uform_outcome_t *const *completion,
                                     uform_arena_t const *arena) noexcept {
    if (!arena) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arena: must not be NULL");
    if (completion && !executor)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "completion: a deferred call needs an executor");
    return uform_success_k;
}

/** The class that a call runs as; CONFIG_MISMATCH where model and executor are pinned to different ones. */
inline uform_status_t resolve_cpu_class(uform_model_t const &model, uform_executor_t const *executor,
                                        uform_cpu_class_t &cpu_class) noexcept {
    uform_cpu_class_t const pinned = executor ? executor->cpu_class : uform_cpu_class_default_k;
    if (pinned != uform_cpu_class_default_k && model.cpu_class_pinned && pinned != model.cpu_class)
        return fail(uform_config_mismatch_k, UFORM_NO_ITEM, "executor: pinned to %s, but the model is pinned to %s",
                    uform_cpu_class_name(pinned), uform_cpu_class_name(model.cpu_class));
    cpu_class = pinned != uform_cpu_class_default_k ? pinned : model.cpu_class;
    return uform_success_k;
}

/** The scalar that outputs land as: F32 where none is named. */
inline uform_status_t resolve_scalar(uform_scalar_t const &asked, uform_scalar_t &scalar) noexcept {
    int const number = number_of(asked);
    if (number != uform_scalar_default_k && !uform_scalar_name(number))
        return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "outputs_scalar: %d is no scalar", number);
    scalar = number != uform_scalar_default_k ? asked : uform_f32_k;
    return uform_success_k;
}

/**
 *  Runs a call whose arguments are checked: `call.run(arena, team)`, on an arena that it rewinds itself. A failure is
 *  noted on the thread that runs it. With a completion, that the arena or the executor is held is told by the outcome.
 */
template <typename call_type_>
uform_status_t dispatch(call_type_ const &call, uform_executor_t *executor, uform_outcome_t **completion,
                        uform_arena_t &arena) noexcept {
    if (!completion) {
        arena_hold_t arena_hold;
        executor_hold_t executor_hold;
        if (uform_status_t const status = arena_hold.acquire(arena)) return status;
        if (!executor) return call.run(arena_hold, arena.team);
        if (uform_status_t const status = executor_hold.acquire(*executor, false)) return status;
        return call.run(arena_hold, executor_hold.team());
    }

    std::unique_ptr<uform_outcome_t> outcome {new (std::nothrow) uform_outcome_t};
    std::unique_ptr<deferred_call_t<call_type_>> deferred {
        new (std::nothrow) deferred_call_t<call_type_> {call, {}, {}, outcome.get()}};
    if (!outcome || !deferred) return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "completion: no memory for it");
    uform_status_t status = deferred->arena.acquire(arena);
    if (status == uform_success_k) status = deferred->executor.acquire(*executor, true);
    if (status != uform_success_k && status != uform_contended_k) return status;
    uform_outcome_t *const submitted = outcome.release();
    // Written before the call may be final: who is told through it finds it there.
    *completion = submitted;
    if (status == uform_contended_k) {
        deferred.reset();
        submitted->finish(last_failure());
    }
    else {
        executor_hold_t::lead(*executor, deferred_call_t<call_type_>::run, deferred.release());
    }
    return uform_deferred_k;
}

} // namespace uform
