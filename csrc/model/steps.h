/**
 *  Work that a team shares out step by step: whoever comes takes the next unit of a step, and nobody goes on before all
 *  of its units are done. A thread that the system keeps waiting thus holds up no more than the unit that it has, where
 * a fixed share would stall the others at every step.
 */
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>

#include "../core/spin.h"

namespace uform {

/** One step's units: taken, and done. Apart from its neighbours' cache lines. */
struct alignas(64) step_t {
    std::atomic<uint32_t> taken {0};
    event_t done {0};
};

/** A thread's way through the steps: every thread makes the same calls of `run` in the same order. */
class steps_t {
  public:
    explicit steps_t(step_t *steps) noexcept : next_(steps) {}

    /** Makes steps anew, while no thread is on its way through them. */
    static void reset(step_t *steps, size_t count) noexcept {
        for (size_t index = 0; index != count; ++index) new (steps + index) step_t;
    }

    /** Calls `unit(index)` for those of `count` units that no other thread takes; returns once all are done. */
    template <typename unit_type_> void run(size_t count, unit_type_ &&unit) noexcept {
        step_t &step = *next_++;
        uint32_t const units = static_cast<uint32_t>(count);
        for (uint32_t index; (index = step.taken.fetch_add(1, std::memory_order_relaxed)) < units;) {
            unit(static_cast<size_t>(index));
            step.done.add(1);
        }
        for (uint32_t done; (done = step.done.load()) != units;) wait_while(step.done, done, false);
    }

  private:
    step_t *next_;
};

} // namespace uform
