/** Timing on a machine that has other work to do as well. Internal linkage: see csrc/kernels/simd/avx512.h. */
#pragma once
#include <time.h>

namespace uform {
namespace {

/** Seconds that this thread has run: what others take of the core does not count. */
inline double thread_seconds() noexcept {
    timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

/** Seconds of the fastest of many calls, in batches of at least a millisecond, over about `budget` seconds. */
template <typename callable_type_> double fastest(callable_type_ &&callable, double budget = 0.2) noexcept {
    constexpr double batch_seconds = 1e-3;
    callable();
    double const start = thread_seconds();
    double best = 1e30;
    for (int calls = 1; thread_seconds() - start < budget;) {
        double const before = thread_seconds();
        for (int call = 0; call != calls; ++call) callable();
        double const seconds = thread_seconds() - before;
        if (seconds / calls < best) best = seconds / calls;
        if (seconds < batch_seconds) calls *= 2;
    }
    return best;
}

} // namespace
} // namespace uform
