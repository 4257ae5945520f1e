/** An executor's threads. */
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <pthread.h>

#include "uform/types.h"

#include "cores.h"
#include "event.h"
#include "memory.h"
#include "spin.h"
#include "team.h"

namespace uform {

/**
 *  Slot 0 of a call is its own thread: the caller's, or for a deferred call the pool's leader. Slots from 1 on are the
 *  pool's helpers. Threads start when a call first needs them, so an executor that nothing runs on costs none, and a
 *  blocking call on one thread runs where it is.
 *  All but `ring` and the destructor is for the call that holds the executor.
 */
class pool_t final : public team_t {
  public:
    using task_t = void (*)(void *context) noexcept;

    /** nullptr: out of memory. `cores`, if any, and `mood` must outlive the pool. */
    static pool_t *make(size_t threads, core_set_t const *cores, std::atomic<uform_mood_t> const &mood) noexcept;
    /** Ends the threads. No call may run. */
    ~pool_t() override;

    /** Of the process that its threads are in. */
    uint32_t epoch() const noexcept { return epoch_; }

    /** Starts the threads that a call needs and that do not run yet. 0, or an error number of the system. */
    int start(bool with_leader) noexcept;

    /**
     *  Wakes the helpers while the call still plans, and keeps them at hand until `end_call`. The leader stays at hand
     *  from one deferred call to the next, and sleeps from a blocking call on, whose thread has its place.
     */
    void begin_call(bool with_leader) noexcept;
    void end_call() noexcept { in_call_.store(false, std::memory_order_relaxed); }

    /** Has the leader run the task, which ends the call itself. */
    void lead(task_t task, void *context) noexcept;

    /** Has waiting threads look at the mood again. From any thread. */
    void ring() noexcept;

    size_t threads() const noexcept override { return threads_; }
    void run(body_t body, void *context) noexcept override;
    void barrier() noexcept override;
    std::byte *scratch(size_t slot, size_t bytes) noexcept override { return blocks_[slot].reserve(bytes); }

  private:
    struct thread_t {
        pool_t *pool = nullptr;
        pthread_t handle {};
        bool started = false;
        std::atomic<int> number {0}; /**< The system's, once it runs. */
        /** Of its sleep between runs. Who rings moves a sleeper, so that `cores` has one writer at a time. */
        enum class rest_t { awake_k, asleep_k, moving_k };
        std::atomic<rest_t> rest {rest_t::awake_k};
        bool is_kept_off = false; /**< From the core of who rings, until it sleeps again. */
        core_set_t cores;         /**< That it gets back then. */
    };

    pool_t(size_t threads, core_set_t const *cores, std::atomic<uform_mood_t> const &mood) noexcept;
    int start_thread(size_t slot) noexcept;
    void help(size_t slot) noexcept;
    void follow_lead() noexcept;
    void wake_helpers() noexcept;
    void keep_off(thread_t &worker, int thread, int core) noexcept;
    static void sleep(thread_t &worker, event_t &bell, uint32_t heard) noexcept;
    enum class role_t { leader_k, helper_k };
    void await_ring(role_t role, thread_t &worker, event_t &bell, uint32_t heard) noexcept;
    bool may_spin(role_t role, spin_clock_t::duration waited) const noexcept;
    /** Whether who will ring next was last seen on this thread's core. */
    bool on_ringers_core(role_t role) const noexcept {
        auto const &core = role == role_t::leader_k ? submitter_core_ : caller_core_;
        return current_core() == core.load(std::memory_order_relaxed);
    }

    size_t const threads_;
    core_set_t const *const cores_;
    std::atomic<uform_mood_t> const &mood_;
    uint32_t const epoch_;
    std::unique_ptr<thread_t[]> workers_;      /**< [threads]: the leader, then the helpers by slot. */
    std::unique_ptr<memory_block_t[]> blocks_; /**< [threads + 1]: scratch by slot, then the shared. */
    bool all_helpers_started_ = false;

    std::atomic<bool> in_call_ {false};
    std::atomic<bool> leader_at_hand_ {false};
    std::atomic<bool> ending_ {false};
    /* On a busy machine a thread may end up on the core of who rings for it, where spinning delays both. */
    std::atomic<int> submitter_core_ {-2}; /**< Rings for the leader. */
    std::atomic<int> caller_core_ {-2};    /**< Slot 0's: rings for helpers. */
    std::atomic<bool> crowded_ {false};    /**< A helper was on slot 0's core. */

    /** Leader's: rung for each task. */
    alignas(64) event_t leader_bell_;
    task_t task_ = nullptr;
    void *task_context_ = nullptr;
    std::atomic<uint32_t> tasks_ {0};

    /** Helpers': rung for each run, at the start of a call and when the mood changes; `runs_` tells which. */
    alignas(64) event_t helpers_bell_;
    body_t body_ = nullptr;
    void *context_ = nullptr;
    std::atomic<uint32_t> runs_ {0};

    alignas(64) std::atomic<uint32_t> running_ {0}; /**< Helpers that have not returned from the run. */
    event_t finished_;                              /**< Runs that all helpers have returned from. */
    alignas(64) std::atomic<uint32_t> arrived_ {0}; /**< At the barrier. */
    alignas(64) event_t passed_;                    /**< Barriers so far. */
};

} // namespace uform
