#include "pool.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <new>

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "floating_point.h"
#include "process.h"

namespace uform {
namespace {

/** Kernels keep their blocks in scratch; this leaves room for a progress handler that runs an interpreter. */
constexpr size_t stack_bytes_k = size_t(8) << 20;
/** How long a thread that chills spins for the next call, or one that is parked within a call for the next run. */
constexpr auto chilling_spin_k = std::chrono::microseconds(40);
constexpr auto grinding_yield_k = std::chrono::microseconds(50);
/** Of moves away from slot 0's core: two executors on the same cores must not chase each other. */
constexpr auto move_interval_k = std::chrono::milliseconds(1);

/**
 *  Signals are the business of the program's own threads: a thread that is made under this takes none but those of its
 *  own faults, which would end the process unheard if they were blocked.
 */
class signals_blocked_t {
  public:
    signals_blocked_t() noexcept {
        sigset_t all;
        sigfillset(&all);
        for (int fault : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP}) sigdelset(&all, fault);
        pthread_sigmask(SIG_SETMASK, &all, &saved_);
    }
    ~signals_blocked_t() { pthread_sigmask(SIG_SETMASK, &saved_, nullptr); }

  private:
    sigset_t saved_;
};

/** Lets a thread run on those cores; 0 is the calling one. */
bool set_cores([[maybe_unused]] int thread, [[maybe_unused]] core_set_t const &cores) noexcept {
#if defined(__linux__)
    return sched_setaffinity(thread, sizeof(cores.words), reinterpret_cast<cpu_set_t const *>(cores.words)) == 0;
#else
    return false;
#endif
}

/** The cores that a thread may run on; none where the system does not tell. */
core_set_t cores_of([[maybe_unused]] int thread) noexcept {
    core_set_t cores;
#if defined(__linux__)
    if (sched_getaffinity(thread, sizeof(cores.words), reinterpret_cast<cpu_set_t *>(cores.words)) < 0) return {};
#endif
    return cores;
}

void name_this_thread(size_t slot) noexcept {
    char name[16];
    std::snprintf(name, sizeof(name), "uform-%u", unsigned(slot));
#if defined(__APPLE__)
    pthread_setname_np(name);
#else
    pthread_setname_np(pthread_self(), name);
#endif
}

} // namespace

pool_t::pool_t(size_t threads, core_set_t const *cores, std::atomic<uform_mood_t> const &mood) noexcept
    : threads_(threads), cores_(cores), mood_(mood), epoch_(process_epoch()),
      workers_(new (std::nothrow) thread_t[threads]), blocks_(new (std::nothrow) memory_block_t[threads + 1]) {}

pool_t *pool_t::make(size_t threads, core_set_t const *cores, std::atomic<uform_mood_t> const &mood) noexcept {
    std::unique_ptr<pool_t> pool {new (std::nothrow) pool_t {threads, cores, mood}};
    return pool && pool->workers_ && pool->blocks_ ? pool.release() : nullptr;
}

pool_t::~pool_t() {
    ending_.store(true, std::memory_order_relaxed);
    ring();
    for (size_t slot = 0; workers_ && slot != threads_; ++slot)
        if (workers_[slot].started) pthread_join(workers_[slot].handle, nullptr);
}

int pool_t::start(bool with_leader) noexcept {
    if (with_leader && !workers_[0].started)
        if (int const error = start_thread(0)) return error;
    if (all_helpers_started_) return 0;
    for (size_t slot = 1; slot != threads_; ++slot)
        if (!workers_[slot].started)
            if (int const error = start_thread(slot)) return error;
    all_helpers_started_ = true;
    return 0;
}

int pool_t::start_thread(size_t slot) noexcept {
    pthread_attr_t attributes;
    if (int const error = pthread_attr_init(&attributes)) return error;
    int error = pthread_attr_setstacksize(&attributes, stack_bytes_k);
#if defined(__linux__)
    if (!error && cores_)
        error = pthread_attr_setaffinity_np(&attributes, sizeof(cores_->words),
                                            reinterpret_cast<cpu_set_t const *>(cores_->words));
#endif
    thread_t &worker = workers_[slot];
    worker.pool = this;
    auto const entry = [](void *argument) -> void * {
        thread_t &self = *static_cast<thread_t *>(argument);
        pool_t &pool = *self.pool;
        size_t const slot = size_t(&self - pool.workers_.get());
        name_this_thread(slot);
#if defined(__linux__)
        self.number.store(int(syscall(SYS_gettid)), std::memory_order_relaxed);
#endif
        if (slot == 0) pool.follow_lead();
        else pool.help(slot);
        return nullptr;
    };
    if (!error) {
        signals_blocked_t blocked;
        error = pthread_create(&worker.handle, &attributes, entry, &worker);
    }
    pthread_attr_destroy(&attributes);
    worker.started = error == 0;
    return error;
}

void pool_t::begin_call(bool with_leader) noexcept {
    in_call_.store(true, std::memory_order_relaxed);
    leader_at_hand_.store(with_leader, std::memory_order_relaxed);
    int const core = current_core();
    submitter_core_.store(core, std::memory_order_relaxed);
    caller_core_.store(core, std::memory_order_relaxed);
    if (threads_ == 1) return;
    // The leader wakes the helpers itself, from the core that it will be on.
    if (with_leader) helpers_bell_.add(1);
    else wake_helpers();
}

void pool_t::wake_helpers() noexcept {
    int const core = caller_core_.load(std::memory_order_relaxed);
    for (size_t slot = 1; slot != threads_; ++slot) {
        thread_t &worker = workers_[slot];
        thread_t::rest_t expected = thread_t::rest_t::asleep_k;
        if (!worker.rest.compare_exchange_strong(expected, thread_t::rest_t::moving_k, std::memory_order_acquire))
            continue;
        keep_off(worker, worker.number.load(std::memory_order_relaxed), core);
        worker.rest.store(thread_t::rest_t::awake_k, std::memory_order_release);
    }
    helpers_bell_.add(1);
}

/**
 *  The system likes to wake a thread on its waker's core, to part the two milliseconds later: the longer both have
 * slept, the likelier. A call may be over by then. So helpers have all cores but slot 0's, from one sleep to the next.
 */
void pool_t::keep_off(thread_t &worker, int thread, int core) noexcept {
    core_set_t const allowed = worker.is_kept_off ? worker.cores : cores_of(thread);
    core_set_t others = allowed;
    others.erase(size_t(core));
    // With more threads than cores, one of them has to be on this core too.
    if (allowed.count() < threads_ || others.count() == allowed.count() || !set_cores(thread, others)) return;
    worker.cores = allowed;
    worker.is_kept_off = true;
}

void pool_t::lead(task_t task, void *context) noexcept {
    task_ = task;
    task_context_ = context;
    tasks_.fetch_add(1, std::memory_order_release);
    leader_bell_.add(1);
}

void pool_t::ring() noexcept {
    leader_bell_.add(1);
    helpers_bell_.add(1);
}

void pool_t::run(body_t body, void *context) noexcept {
    if (threads_ > 1) {
        body_ = body;
        context_ = context;
        caller_core_.store(current_core(), std::memory_order_relaxed);
        running_.store(uint32_t(threads_ - 1), std::memory_order_relaxed);
        runs_.fetch_add(1, std::memory_order_release);
        wake_helpers();
    }
    {
        floating_point_guard_t guard;
        body(context, 0);
    }
    if (threads_ > 1) {
        uint32_t const before = runs_.load(std::memory_order_relaxed) - 1;
        wait_while(finished_, before, crowded_.load(std::memory_order_relaxed));
    }
}

void pool_t::barrier() noexcept {
    if (threads_ == 1) return;
    uint32_t const passed = passed_.load();
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == threads_) {
        arrived_.store(0, std::memory_order_relaxed);
        passed_.store(passed + 1);
    }
    else {
        wait_while(passed_, passed, crowded_.load(std::memory_order_relaxed));
    }
}

void pool_t::help(size_t slot) noexcept {
    spin_clock_t::time_point moved {};
    for (uint32_t done = 0;;) {
        uint32_t const heard = helpers_bell_.load();
        if (ending_.load(std::memory_order_relaxed)) return;
        if (in_call_.load(std::memory_order_relaxed) && on_ringers_core(role_t::helper_k))
            if (auto const now = spin_clock_t::now(); now - moved >= move_interval_k) {
                moved = now;
                keep_off(workers_[slot], 0, current_core());
            }
        uint32_t const runs = runs_.load(std::memory_order_acquire);
        if (runs == done) {
            await_ring(role_t::helper_k, workers_[slot], helpers_bell_, heard);
            continue;
        }
        done = runs;
        if (bool const shared = on_ringers_core(role_t::helper_k); shared != crowded_.load(std::memory_order_relaxed))
            crowded_.store(shared, std::memory_order_relaxed);
        {
            floating_point_guard_t guard;
            body_(context_, slot);
        }
        if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) finished_.store(runs);
    }
}

void pool_t::follow_lead() noexcept {
    for (uint32_t done = 0;;) {
        uint32_t const heard = leader_bell_.load();
        if (ending_.load(std::memory_order_relaxed)) return;
        uint32_t const tasks = tasks_.load(std::memory_order_acquire);
        if (tasks == done) {
            await_ring(role_t::leader_k, workers_[0], leader_bell_, heard);
            continue;
        }
        done = tasks;
        task_(task_context_);
    }
}

bool pool_t::may_spin(role_t role, spin_clock_t::duration waited) const noexcept {
    if (role == role_t::leader_k && !leader_at_hand_.load(std::memory_order_relaxed)) return false;
    uform_mood_t const mood = mood_.load(std::memory_order_relaxed);
    if (mood == uform_mood_grinding_k) return true;
    if (mood == uform_mood_parked_k && !in_call_.load(std::memory_order_relaxed)) return false;
    return waited < chilling_spin_k && !on_ringers_core(role);
}

void pool_t::await_ring(role_t role, thread_t &worker, event_t &bell, uint32_t heard) noexcept {
    auto const start = spin_clock_t::now();
    auto yielded = start;
    for (auto now = start; may_spin(role, now - start); now = spin_clock_t::now()) {
        for (int round = 0; round != relaxes_a_look_k; ++round) {
            if (bell.load() != heard) return;
            relax();
        }
        // Threads that grind must not keep the core from the one that is to make the next call.
        if (now - yielded < grinding_yield_k && !on_ringers_core(role)) continue;
        sched_yield();
        yielded = spin_clock_t::now();
    }
    sleep(worker, bell, heard);
}

void pool_t::sleep(thread_t &worker, event_t &bell, uint32_t heard) noexcept {
    using rest_t = thread_t::rest_t;
    if (worker.is_kept_off) {
        set_cores(0, worker.cores);
        worker.is_kept_off = false;
    }
    worker.rest.store(rest_t::asleep_k, std::memory_order_release);
    bell.sleep(heard);
    // Who rings may be about to move it.
    for (rest_t expected = rest_t::asleep_k;
         !worker.rest.compare_exchange_weak(expected, rest_t::awake_k, std::memory_order_acquire);
         expected = rest_t::asleep_k) {
        if (expected == rest_t::awake_k) break;
        relax();
    }
}

} // namespace uform
