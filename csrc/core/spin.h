/** Waiting for an event to change, when it is likely to change soon. */
#pragma once
#include <atomic>
#include <chrono>
#include <cstdint>
#include <sched.h>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "event.h"

namespace uform {

using spin_clock_t = std::chrono::steady_clock;

/** Tells the core that this thread only waits. */
inline void relax() noexcept {
#if defined(__x86_64__)
    _mm_pause();
#elif defined(__aarch64__)
    __asm__ volatile("isb");
#endif
}

/** The core that this thread is on right now; -1 where the system does not tell. */
inline int current_core() noexcept {
#if defined(__linux__)
    return sched_getcpu();
#else
    return -1;
#endif
}

/** A clock read costs about as much as a few dozen of these. */
constexpr int relaxes_a_look_k = 32;

/**
 *  Returns once the event is not `value` any more. Spins while the other threads are likely to be at work on cores of
 *  their own, then sleeps: they may need this very core. `crowded`: one of them is known to.
 */
inline void wait_while(event_t &event, uint32_t value, bool crowded) noexcept {
    constexpr auto spin_k = std::chrono::microseconds(100);
    auto const start = spin_clock_t::now();
    do
        for (int round = 0; round != relaxes_a_look_k; ++round) {
            if (event.load() != value) return;
            relax();
        }
    while (!crowded && spin_clock_t::now() - start < spin_k);
    event.sleep(value);
}

} // namespace uform
