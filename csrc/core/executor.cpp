#include "executor.h"

#include <cstring>
#include <memory>
#include <new>

#include "cpu_class.h"
#include "failure.h"
#include "kind.h"
#include "process.h"

namespace uform {
namespace {

/** Far above any machine's cores; keeps a mistaken number from exhausting the system. */
constexpr size_t threads_limit_k = 4096;

/** The cores of the domains that are named, as far as this process may use them. */
uform_status_t confine(uform_executor_t &executor, uform_executor_ram_t const &options) noexcept {
    if (!options.memory_domains_count)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "memory_domains: at least one has to be named");
    core_set_t const allowed = affinity();
    for (size_t index = 0; index != options.memory_domains_count; ++index) {
        size_t const domain = options.memory_domains[index];
        core_set_t cores;
        if (!insert_domain(cores, domain))
            return fail(uform_invalid_argument_k, index, "memory_domains: there is no memory domain %zu", domain);
        size_t usable = 0;
        for (size_t core = 0; core != core_set_t::limit_k; ++core)
            if (cores.contains(core) && allowed.contains(core)) executor.cores.insert(core), ++usable;
        if (!usable)
            return fail(uform_invalid_argument_k, index,
                        "memory_domains: this process may run on no core of memory domain %zu", domain);
    }
    executor.confined = true;
    return uform_success_k;
}

} // namespace

uform_status_t executor_hold_t::acquire(uform_executor_t &executor, bool deferred) noexcept {
    if (!executor.occupancy.try_take())
        return fail(uform_contended_k, UFORM_NO_ITEM, "executor: it serves another call");
    pool_t *pool = executor.pool.load(std::memory_order_relaxed);
    if (!pool || pool->epoch() != process_epoch()) {
        // After a fork the old pool is left as it is: its threads stayed in the parent, maybe in the middle of a call.
        pool = pool_t::make(executor.threads, executor.confined ? &executor.cores : nullptr, executor.mood);
        if (!pool) {
            executor.occupancy.give_back();
            return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "executor: no memory for %zu threads", executor.threads);
        }
        executor.pool.store(pool, std::memory_order_release);
    }
    if (int const error = pool->start(deferred)) {
        executor.occupancy.give_back();
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "executor: its %zu threads cannot be started (error %d)",
                    executor.threads, error);
    }
    pool->begin_call(deferred);
    executor_ = &executor;
    return uform_success_k;
}

void executor_hold_t::release() noexcept {
    uform_executor_t *const executor = std::exchange(executor_, nullptr);
    if (!executor) return;
    executor->pool.load(std::memory_order_relaxed)->end_call();
    executor->occupancy.give_back();
}

} // namespace uform

uform_status_t uform_executor_init_ram(uform_executor_ram_t const *options, uform_executor_t **executor) {
    using namespace uform;
    if (!executor) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "executor: must not be NULL");
    uform_executor_ram_t const defaults {};
    if (!options) options = &defaults;
    if (uform_status_t const status = check_cpu_class(options->cpu_class)) return status;
    if (options->threads > threads_limit_k)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "threads: an executor can own %zu at the most, not %zu",
                    threads_limit_k, options->threads);
    if (!options->memory_domains && options->memory_domains_count)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "memory_domains: NULL, but their number is %zu",
                    options->memory_domains_count);

    std::unique_ptr<uform_executor_t> made {new (std::nothrow) uform_executor_t};
    if (!made) return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "executor: no memory for it");
    made->cpu_class = options->cpu_class;
    if (options->memory_domains)
        if (uform_status_t const status = confine(*made, *options)) return status;
    made->threads = options->threads;
    if (!made->threads) made->threads = usable_cores(made->confined ? made->cores : affinity());
    watch_forks();
    *executor = made.release();
    return uform_success_k;
}

uform_status_t uform_executor_init_vram(size_t const *devices, size_t count, size_t scratch_limit,
                                        uform_gpu_class_t gpu_class, uform_executor_t **executor) {
    using namespace uform;
    (void)scratch_limit;
    if (!executor) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "executor: must not be NULL");
    if (!devices && count)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "devices: NULL, but their number is %zu", count);
    int const number = number_of(gpu_class);
    if (number != uform_gpu_class_default_k && !uform_gpu_class_name(number))
        return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "gpu_class: %d is no GPU class", number);
    if (count) return fail(uform_device_k, 0, "devices: no device %zu, this build of UForm can drive none", devices[0]);
    return fail(uform_unsupported_k, UFORM_NO_ITEM, "devices: this build of UForm can drive no device");
}

size_t uform_gpu_device_count(void) { return 0; }

size_t uform_executor_threads(uform_executor_t const *executor) { return executor->threads; }

uform_cpu_class_t uform_executor_cpu_class(uform_executor_t const *executor) { return executor->cpu_class; }

bool uform_executor_busy(uform_executor_t const *executor) { return executor->occupancy.taken(); }

uform_status_t uform_executor_drain(uform_executor_t *executor, uform_mood_t mood) {
    using namespace uform;
    if (!executor) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "executor: must not be NULL");
    int const number = number_of(mood);
    if (number != uform_mood_default_k && !uform_mood_name(number))
        return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "mood: %d is no mood", number);
    if (mood == uform_mood_default_k) mood = uform_mood_chilling_k;
    executor->occupancy.wait();
    executor->mood.store(mood, std::memory_order_relaxed);
    // A pool of the parent's is never released in a forked child, so ringing it is harmless.
    if (pool_t *pool = executor->pool.load(std::memory_order_acquire)) pool->ring();
    return uform_success_k;
}

void uform_executor_free(uform_executor_t *executor) {
    if (!executor) return;
    while (executor->occupancy.taken()) executor->occupancy.wait();
    uform::pool_t *pool = executor->pool.load(std::memory_order_acquire);
    if (pool && pool->epoch() == uform::process_epoch()) delete pool;
    delete executor;
}
