/** Executors: their threads, moods, contention, forks and floating-point environment. */
#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <dirent.h>
#include <pthread.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "check.h"
#include "core/executor.h"
#include "core/failure.h"
#include "core/outcome.h"

using namespace uform;
using test_clock_t = std::chrono::steady_clock;

static uform_executor_t *make_executor(size_t threads) {
    uform_executor_ram_t options {};
    options.threads = threads;
    uform_executor_t *executor = nullptr;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
    return executor;
}

static size_t threads_of_process() {
    size_t threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    while (dirent const *entry = readdir(tasks)) threads += entry->d_name[0] != '.';
    closedir(tasks);
    return threads;
}

/** The system may take a moment to forget a thread that was joined; the thread sanitizer has threads of its own. */
static bool threads_become([[maybe_unused]] size_t expected) {
#if !defined(__SANITIZE_THREAD__)
    for (int look = 0; threads_of_process() != expected; ++look) {
        if (look == 1000) return false;
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
#endif
    return true;
}

/** Runs a body on each slot `rounds` times, with a barrier between; the sum of what the slots counted. */
static size_t count_on(team_t &team, size_t rounds) {
    std::atomic<size_t> counted {0};
    team.run_each([&](size_t slot) noexcept {
        for (size_t round = 0; round != rounds; ++round) {
            counted += slot < team.threads();
            team.barrier();
            if (counted.load() < (round + 1) * team.threads()) std::abort();
            team.barrier();
        }
    });
    return counted;
}

static void bad_options_are_refused() {
    uform_executor_t *executor = nullptr;
    uform_executor_ram_t options {};
    CHECK_STATUS(uform_executor_init_ram(&options, nullptr), uform_invalid_argument_k);
    options.cpu_class = uform_cpu_class_t(77);
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_unknown_kind_k);
#if defined(__x86_64__)
    options.cpu_class = uform_cpu_class_neon_k;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_unsupported_k);
#endif
    options = {};
    options.threads = SIZE_MAX;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_invalid_argument_k);
    options = {};
    size_t const domains[] = {0, 100000};
    options.memory_domains_count = 1;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_invalid_argument_k);
    options.memory_domains = domains;
    options.memory_domains_count = 0;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_invalid_argument_k);
    options.memory_domains_count = 2;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_invalid_argument_k);
    CHECK(last_failure().item == 1 && std::strstr(last_failure().message, "100000"));
    CHECK_STATUS(uform_executor_init_vram(domains, 1, 0, uform_gpu_class_default_k, &executor), uform_device_k);
    CHECK_STATUS(uform_executor_init_vram(nullptr, 0, 0, uform_gpu_class_default_k, &executor), uform_unsupported_k);
    CHECK_STATUS(uform_executor_init_vram(nullptr, 0, 0, uform_gpu_class_t(50), &executor), uform_unknown_kind_k);
    CHECK_STATUS(uform_executor_init_vram(nullptr, 1, 0, uform_gpu_class_default_k, &executor),
                 uform_invalid_argument_k);
    CHECK(!executor && uform_gpu_device_count() == 0);
    uform_executor_free(nullptr);
}

static void defaults_fit_the_machine() {
    uform_executor_t *executor = nullptr;
    CHECK_STATUS(uform_executor_init_ram(nullptr, &executor), uform_success_k);
    CHECK(uform_executor_threads(executor) == usable_cores(affinity()));
    CHECK(uform_executor_cpu_class(executor) == uform_cpu_class_default_k && !uform_executor_busy(executor));
    uform_executor_free(executor);
    uform_executor_ram_t options {};
    options.cpu_class = uform_cpu_class_serial_k;
    options.threads = 5;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
    CHECK(uform_executor_threads(executor) == 5 && uform_executor_cpu_class(executor) == uform_cpu_class_serial_k);
    uform_executor_free(executor);
}

static void threads_are_as_asked() {
    size_t const before = threads_of_process();
    uform_executor_t *executor = make_executor(4);
    CHECK(threads_become(before));
    for (int round = 0; round != 3; ++round) {
        executor_hold_t hold;
        CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
        CHECK(uform_executor_busy(executor) && hold.team().threads() == 4);
        CHECK(count_on(hold.team(), 100) == 400);
        CHECK(threads_become(before + 3));
    }
    CHECK(!uform_executor_busy(executor));
    {
        executor_hold_t hold;
        CHECK_STATUS(hold.acquire(*executor, true), uform_success_k);
        CHECK(threads_become(before + 4));
    }
    uform_executor_free(executor);
    CHECK(threads_become(before));

    executor = make_executor(1);
    {
        executor_hold_t hold;
        CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
        CHECK(count_on(hold.team(), 10) == 10 && threads_become(before));
    }
    uform_executor_free(executor);
}

static void domains_confine_threads() {
    size_t const domain = 0;
    uform_executor_ram_t options {};
    options.memory_domains = &domain;
    options.memory_domains_count = 1;
    options.threads = 2;
    uform_executor_t *executor = nullptr;
    CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    std::atomic<bool> confined {false};
    hold.team().run_each([&](size_t slot) noexcept {
        if (slot != 1) return;
        // It may be kept off slot 0's core.
        core_set_t const mine = affinity();
        bool within = mine.count() > 0;
        for (size_t core = 0; core != core_set_t::limit_k; ++core)
            within &= !mine.contains(core) || executor->cores.contains(core);
        confined = within;
    });
    CHECK(confined);
    hold.release();
    uform_executor_free(executor);
}

static void helpers_have_names_and_take_no_signals() {
    uform_executor_t *executor = make_executor(3);
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    std::atomic<size_t> good {0};
    hold.team().run_each([&](size_t slot) noexcept {
        if (slot == 0) return;
        char name[32] = {};
        pthread_getname_np(pthread_self(), name, sizeof(name));
        sigset_t blocked;
        pthread_sigmask(SIG_SETMASK, nullptr, &blocked);
        good += name == "uform-" + std::to_string(slot) && sigismember(&blocked, SIGINT) == 1;
    });
    CHECK(good == 2);
    hold.release();
    uform_executor_free(executor);
}

static void scratch_is_kept() {
    uform_executor_t *executor = make_executor(2);
    std::byte *kept[3] = {};
    for (int round = 0; round != 3; ++round) {
        executor_hold_t hold;
        CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
        for (size_t slot = 0; slot != 3; ++slot) {
            std::byte *scratch = hold.team().scratch(slot, 10000 - size_t(round));
            CHECK(scratch && reinterpret_cast<uintptr_t>(scratch) % 64 == 0);
            CHECK(round == 0 || scratch == kept[slot]);
            std::memset(scratch, 1, 9000);
            kept[slot] = scratch;
        }
    }
    uform_executor_free(executor);
}

#if defined(__x86_64__)
static void bodies_run_in_the_default_environment() {
    uform_executor_t *executor = make_executor(3);
    unsigned const before = _mm_getcsr(), odd = (before | 0x8040) ^ 0x2000; // Flushes denormals, rounds otherwise.
    _mm_setcsr(odd);
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    std::atomic<size_t> same {0};
    hold.team().run_each([&](size_t) noexcept { same += (_mm_getcsr() & 0xFFC0) == 0x1F80; });
    unsigned const after = _mm_getcsr();
    _mm_setcsr(before);
    CHECK(same == 3 && after == odd);
    hold.release();
    uform_executor_free(executor);
}
#endif

static void one_call_at_a_time() {
    uform_executor_t *executor = make_executor(2);
    executor_hold_t first, second;
    CHECK_STATUS(first.acquire(*executor, false), uform_success_k);
    CHECK_STATUS(second.acquire(*executor, false), uform_contended_k);
    CHECK(std::strstr(last_failure().message, "executor"));
    CHECK_STATUS(second.acquire(*executor, true), uform_contended_k);
    executor_hold_t moved = std::move(first);
    first.release();
    CHECK(uform_executor_busy(executor));
    moved.release();
    CHECK_STATUS(second.acquire(*executor, false), uform_success_k);
    second.release();
    uform_executor_free(executor);
}

/** Processor time that the process took while its main thread slept. */
static double idle_seconds(double slept) {
    std::clock_t const begin = std::clock();
    std::this_thread::sleep_for(std::chrono::duration<double>(slept));
    return double(std::clock() - begin) / CLOCKS_PER_SEC;
}

static void run_once(uform_executor_t *executor) {
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    CHECK(count_on(hold.team(), 3) == 3 * hold.team().threads());
}

static void moods_do_as_they_say() {
    uform_executor_t *executor = make_executor(2);
    CHECK_STATUS(uform_executor_drain(nullptr, uform_mood_parked_k), uform_invalid_argument_k);
    CHECK_STATUS(uform_executor_drain(executor, uform_mood_t(9)), uform_unknown_kind_k);
    uform_mood_t const moods[] = {uform_mood_parked_k, uform_mood_chilling_k, uform_mood_grinding_k,
                                  uform_mood_parked_k, uform_mood_default_k};
    for (uform_mood_t mood : moods) {
        run_once(executor);
        CHECK_STATUS(uform_executor_drain(executor, mood), uform_success_k);
        // A busy machine gives a thread that grinds its share late: that it takes any is what counts.
        double idle = idle_seconds(0.2);
        for (int wait = 0; mood == uform_mood_grinding_k && idle <= 0.02 && wait != 100; ++wait)
            idle += idle_seconds(0.2);
        if (mood == uform_mood_grinding_k) CHECK(idle > 0.02);
        else CHECK(idle < 0.02);
        run_once(executor);
    }
    uform_executor_free(executor);
}

static void draining_waits_for_the_call() {
    uform_executor_t *executor = make_executor(2);
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    std::atomic<bool> drained {false};
    std::thread drainer([&] {
        uform_executor_drain(executor, uform_mood_parked_k);
        drained = true;
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK(!drained);
    hold.release();
    drainer.join();
    CHECK(drained);
    uform_executor_free(executor);
}

static void freeing_waits_for_the_call() {
    for (int round = 0; round != 200; ++round) {
        uform_executor_t *executor = make_executor(2);
        executor_hold_t hold;
        CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
        std::thread caller([moved = std::move(hold)]() mutable {
            count_on(moved.team(), 5);
            moved.release();
        });
        uform_executor_free(executor);
        caller.join();
    }
}

struct deferred_count_t {
    executor_hold_t hold;
    uform_outcome_t outcome;
    size_t counted = 0;

    static void run(void *context) noexcept {
        auto &self = *static_cast<deferred_count_t *>(context);
        self.counted = count_on(self.hold.team(), 2);
        self.hold.release();
        self.outcome.finish({uform_success_k, UFORM_NO_ITEM, {}});
    }
};

static void submit_and_wait_for_long() {
    for (size_t threads : {1, 2, 3}) {
        uform_executor_t *executor = make_executor(threads);
        size_t const rounds = 33334;
        for (size_t round = 0; round != rounds; ++round) {
            deferred_count_t call;
            CHECK_STATUS(call.hold.acquire(*executor, true), uform_success_k);
            executor_hold_t::lead(*executor, deferred_count_t::run, &call);
            call.outcome.wait();
            CHECK(call.counted == 2 * threads);
            if (check_faults) return;
        }
        uform_executor_free(executor);
    }
}

#if !defined(__SANITIZE_THREAD__) // It cannot follow threads that a forked child starts.

/** Exit code of a child that ran `body`; -1: it did not end in time. */
template <typename body_type_> static int in_child(body_type_ &&body) {
    pid_t const child = fork();
    if (child == 0) {
        check_faults = 0;
        body();
        _exit(check_faults ? 1 : 0);
    }
    int status = 0;
    for (int wait = 0; wait != 2000; ++wait) {
        pid_t const ended = waitpid(child, &status, WNOHANG);
        if (ended == child) return WIFEXITED(status) ? WEXITSTATUS(status) : -2;
        if (ended < 0 && errno != EINTR) return -3;
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    kill(child, SIGKILL);
    waitpid(child, &status, 0);
    return -1;
}

static void children_make_their_own_threads() {
    uform_executor_t *executor = make_executor(3);
    run_once(executor);
    auto const use = [executor] {
        run_once(executor);
        CHECK(threads_become(3));
        CHECK_STATUS(uform_executor_drain(executor, uform_mood_parked_k), uform_success_k);
        run_once(executor);
        uform_executor_free(executor);
        CHECK(threads_become(1));
    };
    CHECK(in_child(use) == 0);
    CHECK(in_child([executor] { uform_executor_free(executor); }) == 0);
    CHECK(in_child([executor] { CHECK_STATUS(uform_executor_drain(executor, uform_mood_grinding_k), 0); }) == 0);
    CHECK(in_child([&] {
              run_once(executor);
              CHECK(in_child(use) == 0);
              run_once(executor);
          }) == 0);
    run_once(executor);

    // The parent forks in the middle of calls, blocking and deferred.
    executor_hold_t hold;
    CHECK_STATUS(hold.acquire(*executor, false), uform_success_k);
    CHECK(in_child([&] {
              CHECK(!uform_executor_busy(executor));
              use();
          }) == 0);
    CHECK(uform_executor_busy(executor));
    hold.release();
    static std::atomic<bool> open;
    open = false;
    auto *outcome = new uform_outcome_t;
    CHECK_STATUS(hold.acquire(*executor, true), uform_success_k);
    std::pair<executor_hold_t, uform_outcome_t *> call {std::move(hold), outcome};
    executor_hold_t::lead(
        *executor,
        [](void *context) noexcept {
            auto &[held, result] = *static_cast<std::pair<executor_hold_t, uform_outcome_t *> *>(context);
            while (!open) std::this_thread::yield();
            held.release();
            result->finish({uform_success_k, UFORM_NO_ITEM, {}});
        },
        &call);
    CHECK(in_child([&] {
              use();
              CHECK_STATUS(uform_outcome_status(outcome), uform_cancelled_k);
              CHECK_STATUS(uform_outcome_wait(outcome), uform_cancelled_k);
              uform_failure_t failure;
              uform_outcome_failure(outcome, &failure);
              CHECK(failure.status == uform_cancelled_k && std::strstr(failure.message, "child"));
              uform_outcome_free(outcome);
          }) == 0);
    open = true;
    CHECK_STATUS(uform_outcome_wait(outcome), uform_success_k);
    uform_outcome_free(outcome);
    run_once(executor);
    uform_executor_free(executor);
}

#endif

int main() {
    RUN(bad_options_are_refused);
    RUN(defaults_fit_the_machine);
    RUN(threads_are_as_asked);
    RUN(domains_confine_threads);
    RUN(helpers_have_names_and_take_no_signals);
    RUN(scratch_is_kept);
#if defined(__x86_64__)
    RUN(bodies_run_in_the_default_environment);
#endif
    RUN(one_call_at_a_time);
    RUN(moods_do_as_they_say);
    RUN(draining_waits_for_the_call);
    RUN(freeing_waits_for_the_call);
    RUN(submit_and_wait_for_long);
#if !defined(__SANITIZE_THREAD__)
    RUN(children_make_their_own_threads);
#endif
    return check_report();
}
