/** Who runs a call: the handle behind `uform_executor_t`, and the hold that a call has on it. */
#pragma once
#include <atomic>
#include <cstddef>
#include <utility>

#include "uform/types.h"

#include "cores.h"
#include "occupancy.h"
#include "pool.h"

/** What the C ABI's handle points to. The pool belongs to the call that holds the executor. */
struct uform_executor_t {
    size_t threads = 1;
    uform_cpu_class_t cpu_class = uform_cpu_class_default_k; /**< Pin, or zero. */
    bool confined = false;                                   /**< To `cores`. */
    uform::core_set_t cores;
    std::atomic<uform_mood_t> mood {uform_mood_chilling_k};
    uform::occupancy_t occupancy;
    std::atomic<uform::pool_t *> pool {nullptr}; /**< Made by the first call, and by the first after a fork. */
};

namespace uform {

/** A call's hold on an executor, given back by the destructor. Moves to the leader with a deferred call. */
class executor_hold_t {
  public:
    executor_hold_t() noexcept = default;
    executor_hold_t(executor_hold_t &&other) noexcept : executor_(std::exchange(other.executor_, nullptr)) {}
    executor_hold_t &operator=(executor_hold_t &&other) noexcept {
        std::swap(executor_, other.executor_);
        return *this;
    }
    ~executor_hold_t() { release(); }

    /**
     *  Takes the executor for a call, and has its threads ready; `deferred`: with a leader. Holds nothing before.
     *  CONTENDED, or OUT_OF_MEMORY where threads cannot be had: noted as the thread's failure, nothing held.
     */
    uform_status_t acquire(uform_executor_t &executor, bool deferred) noexcept;

    /** The executor's threads; while held. */
    team_t &team() const noexcept { return *executor_->pool.load(std::memory_order_relaxed); }

    /** Has the leader run a task that owns this hold, moved away before. `acquire` was asked for a leader. */
    static void lead(uform_executor_t &executor, pool_t::task_t task, void *context) noexcept {
        executor.pool.load(std::memory_order_relaxed)->lead(task, context);
    }

    /** Gives the executor back; holding none is fine. */
    void release() noexcept;

  private:
    uform_executor_t *executor_ = nullptr;
};

} // namespace uform
