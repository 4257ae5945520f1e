/** Which process of a line of forks this is. */
#pragma once
#include <atomic>
#include <cstdint>

namespace uform {

/** See `process_epoch`. */
extern std::atomic<uint32_t> process_epoch_count;

/**
 *  How many forks this process is away from the one that first watched them. What a call holds is marked with it:
 *  a mark of another epoch is a call of the parent's, whose threads do not exist here.
 */
inline uint32_t process_epoch() noexcept { return process_epoch_count.load(std::memory_order_relaxed); }

/** Has forks counted from now on. Called by whatever makes a handle that calls hold. */
void watch_forks() noexcept;

} // namespace uform
