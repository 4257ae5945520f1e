/** Whether a call holds something that serves one call at a time. */
#pragma once
#include <atomic>
#include <cstdint>

#include "event.h"
#include "process.h"

namespace uform {

/**
 *  One word, so that taking, giving back and waiting race with nothing: bit 0 says taken, bits 1-15 count the times it
 *  was given back, bits 16-31 are the epoch of the process that took it. In the child of a fork, what the parent took
 *  is free.
 */
class occupancy_t {
  public:
    bool try_take() noexcept {
        uint32_t word = word_.load(std::memory_order_relaxed);
        do
            if (is_taken(word)) return false;
        while (!word_.compare_exchange_weak(word, process_epoch() << 16 | (word & 0xFFFEu) | 1u,
                                            std::memory_order_acquire, std::memory_order_relaxed));
        return true;
    }

    /** The object may be gone once another thread sees it free: waking goes by its address, nothing is read. */
    void give_back() noexcept {
        uint32_t const word = word_.load(std::memory_order_relaxed);
        word_.store((word & 0xFFFF0000u) | ((word + 1) & 0xFFFFu), std::memory_order_release);
        wake_all(word_);
    }

    bool taken() const noexcept { return is_taken(word_.load(std::memory_order_acquire)); }

    /** Returns once nothing has held it, be it for a moment. */
    void wait() const noexcept {
        uint32_t const word = word_.load(std::memory_order_acquire);
        if (!is_taken(word)) return;
        while (word_.load(std::memory_order_acquire) == word) sleep_while(word_, word);
    }

  private:
    static bool is_taken(uint32_t word) noexcept { return (word & 1u) && word >> 16 == (process_epoch() & 0xFFFFu); }

    std::atomic<uint32_t> word_ {0};
};

} // namespace uform
