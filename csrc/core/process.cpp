#include "process.h"

#include <pthread.h>

namespace uform {

constinit std::atomic<uint32_t> process_epoch_count {0};

void watch_forks() noexcept {
    // Fails for want of memory alone; forks then go unnoticed until the next handle is made.
    static std::atomic<bool> watched {false};
    if (watched.exchange(true, std::memory_order_relaxed)) return;
    auto const in_child = []() { process_epoch_count.fetch_add(1, std::memory_order_relaxed); };
    if (pthread_atfork(nullptr, nullptr, in_child) != 0) watched.store(false, std::memory_order_relaxed);
}

} // namespace uform
