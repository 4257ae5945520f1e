/** Memory that outputs land in: the handle behind `uform_arena_t`, and the hold that a call has on it. */
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "uform/types.h"

#include "memory.h"
#include "serial_team.h"

/**
 *  What the C ABI's handle points to.
 *
 *  One word tells who has a hold on it, so that calls, pins and the end of its life race with nothing: bit 0 busy,
 *  bit 1 freed, bits 2-11 the epoch of the process whose call it is busy with, bits 12-35 pins, bits 36-63 the low bits
 *  of the generation. A call changes the rest while it is busy, and it is never both busy and pinned.
 */
struct uform_arena_t {
  public:
    uform_arena_t() noexcept = default;
    explicit uform_arena_t(uform_allocator_t const &allocator) noexcept : allocator_(allocator) {}
    ~uform_arena_t();

    uint64_t generation() const noexcept { return generation_.load(std::memory_order_acquire); }
    size_t capacity() const noexcept { return capacity_.load(std::memory_order_relaxed); }
    bool busy() const noexcept;
    size_t pins() const noexcept;
    uform_status_t pin(uint64_t generation) noexcept;
    void unpin() noexcept;
    /** The owner has no use for it any more: deletes it now, or at the last unpin. */
    void retire() noexcept;

    /* The rest is for the call that holds it. */

    uform_status_t acquire() noexcept;
    void release() noexcept;
    /** What landed before is gone. */
    void rewind() noexcept;
    /** Room for one call's outputs, once a rewind; nullptr and a noted failure where there is none. */
    std::byte *land(size_t bytes) noexcept;
    /** Scratch for a call's plan, and threads for a call without an executor. */
    uform::memory_block_t plan;
    uform::serial_team_t team;

  private:
    std::byte *land_over_allocator(size_t bytes) noexcept;

    std::atomic<uint64_t> state_ {0};
    std::atomic<uint64_t> generation_ {0};
    std::atomic<size_t> capacity_ {0};
    uform::memory_block_t block_;
    uform_allocator_t const allocator_ {}; /**< Without functions: the arena's own `block_`. */
    void *lent_ = nullptr;                 /**< The allocator's block, of `capacity_` bytes. */
};

namespace uform {

/** A call's hold on an arena, given back by the destructor. */
class arena_hold_t {
  public:
    arena_hold_t() noexcept = default;
    arena_hold_t(arena_hold_t &&other) noexcept : arena_(std::exchange(other.arena_, nullptr)) {}
    arena_hold_t &operator=(arena_hold_t &&other) noexcept {
        std::swap(arena_, other.arena_);
        return *this;
    }
    ~arena_hold_t() { release(); }

    /** Takes the arena, and changes nothing in it yet. CONTENDED where it is pinned or busy, noted. */
    uform_status_t acquire(uform_arena_t &arena) noexcept {
        uform_status_t const status = arena.acquire();
        if (status == uform_success_k) arena_ = &arena;
        return status;
    }
    void release() noexcept {
        if (uform_arena_t *arena = std::exchange(arena_, nullptr)) arena->release();
    }
    uform_arena_t *operator->() const noexcept { return arena_; }
    uform_arena_t &operator*() const noexcept { return *arena_; }

  private:
    uform_arena_t *arena_ = nullptr;
};

} // namespace uform
