/** Numbers that threads sleep on until they change. */
#pragma once
#include <atomic>
#include <climits>
#include <cstdint>

#if defined(__linux__)
#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace uform {

/**
 *  Sleeps while `word` is `value`; may return early. The standard's wait yields before it sleeps, and Linux charges a
 *  yield with the rest of the thread's turn: on a busy core that is milliseconds.
 */
inline void sleep_while(std::atomic<uint32_t> const &word, uint32_t value) noexcept {
#if defined(__linux__)
    static_assert(sizeof(word) == sizeof(uint32_t));
    syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
#else
    word.wait(value, std::memory_order_acquire);
#endif
}

/** Wakes who sleeps on the word. Goes by its address alone: the word may be gone. */
inline void wake_all(std::atomic<uint32_t> &word) noexcept {
#if defined(__linux__)
    syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, INT_MAX, nullptr, nullptr, 0);
#else
    word.notify_all();
#endif
}

/** A number whose changes wake sleepers, and cost no system call where nobody sleeps. Outlives its use. */
class event_t {
  public:
    explicit event_t(uint32_t value = 0) noexcept : word_(value) {}

    uint32_t load() const noexcept { return word_.load(std::memory_order_acquire); }

    // A sleeper counts itself and then looks at the word, who changes it looks at the count after: in one order for all
    // threads, so that at least one sees the other.
    void store(uint32_t value) noexcept {
        word_.store(value, std::memory_order_seq_cst);
        wake();
    }
    /** Returns the number that it was. */
    uint32_t add(uint32_t difference) noexcept {
        uint32_t const before = word_.fetch_add(difference, std::memory_order_seq_cst);
        wake();
        return before;
    }
    void sleep(uint32_t value) noexcept {
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        while (word_.load(std::memory_order_seq_cst) == value) sleep_while(word_, value);
        sleepers_.fetch_sub(1, std::memory_order_relaxed);
    }

  private:
    void wake() noexcept {
        if (sleepers_.load(std::memory_order_seq_cst)) wake_all(word_);
    }

    std::atomic<uint32_t> word_;
    std::atomic<uint32_t> sleepers_ {0};
};

} // namespace uform
