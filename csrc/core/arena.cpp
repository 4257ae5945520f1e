#include "arena.h"

#include <cstdint>
#include <new>

#include "failure.h"
#include "process.h"

namespace {

using namespace uform;

constexpr uint64_t busy_k = 1, freed_k = 2;
constexpr unsigned epoch_shift_k = 2, pins_shift_k = 12, generation_shift_k = 36;
constexpr uint64_t epoch_limit_k = uint64_t(1) << 10, pins_limit_k = uint64_t(1) << 24;
constexpr uint64_t pin_k = uint64_t(1) << pins_shift_k;
constexpr uint64_t generation_mask_k = ~uint64_t(0) << generation_shift_k;

constexpr uint64_t pins_of(uint64_t state) noexcept { return (state >> pins_shift_k) % pins_limit_k; }
uint64_t this_epoch() noexcept { return (process_epoch() % epoch_limit_k) << epoch_shift_k; }
constexpr uint64_t without_call(uint64_t state) noexcept {
    return state & ~(busy_k | (epoch_limit_k - 1) << epoch_shift_k);
}
/** In the child of a fork, a call of the parent's holds nothing. */
bool is_busy(uint64_t state) noexcept {
    return (state & busy_k) && (state & (epoch_limit_k - 1) << epoch_shift_k) == this_epoch();
}

} // namespace

uform_arena_t::~uform_arena_t() {
    if (lent_) allocator_.free(allocator_.handle, lent_, capacity());
}

bool uform_arena_t::busy() const noexcept { return is_busy(state_.load(std::memory_order_acquire)); }

size_t uform_arena_t::pins() const noexcept { return pins_of(state_.load(std::memory_order_acquire)); }

uform_status_t uform_arena_t::acquire() noexcept {
    uint64_t state = state_.load(std::memory_order_relaxed);
    do {
        if (pins_of(state))
            return fail(uform_contended_k, UFORM_NO_ITEM,
                        "arena: pinned by %zu exports of its outputs that are not released", size_t(pins_of(state)));
        if (is_busy(state)) return fail(uform_contended_k, UFORM_NO_ITEM, "arena: it serves another call");
    } while (!state_.compare_exchange_weak(state, without_call(state) | this_epoch() | busy_k,
                                           std::memory_order_acquire, std::memory_order_relaxed));
    if (state & busy_k) {
        // A fork caught the parent in the middle of a call: whatever was changing then is left alone.
        block_.abandon();
        plan.abandon();
        team.abandon();
        lent_ = nullptr;
        capacity_.store(0, std::memory_order_relaxed);
    }
    return uform_success_k;
}

void uform_arena_t::release() noexcept {
    state_.store(without_call(state_.load(std::memory_order_relaxed)), std::memory_order_release);
    // The owner may have freed it already: waking goes by the address, nothing is read.
    state_.notify_all();
}

void uform_arena_t::rewind() noexcept {
    uint64_t const generation = generation_.load(std::memory_order_relaxed) + 1;
    generation_.store(generation, std::memory_order_release);
    uint64_t const state = state_.load(std::memory_order_relaxed) & ~generation_mask_k;
    state_.store(state | generation << generation_shift_k, std::memory_order_release);
}

std::byte *uform_arena_t::land(size_t bytes) noexcept {
    std::byte *data;
    if (allocator_.allocate) {
        data = land_over_allocator(bytes);
    }
    else {
        data = block_.reserve(bytes);
        capacity_.store(block_.capacity(), std::memory_order_relaxed);
    }
    if (!data) {
        fail(uform_out_of_memory_k, UFORM_NO_ITEM, "arena: no memory for %zu bytes of outputs", bytes);
    }
    else if (reinterpret_cast<uintptr_t>(data) % 64 != 0) {
        fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arena: its allocator gave memory not aligned to 64 bytes");
        data = nullptr;
    }
    return data;
}

std::byte *uform_arena_t::land_over_allocator(size_t bytes) noexcept {
    void *const taken = allocator_.allocate(allocator_.handle, bytes);
    void *const previous = std::exchange(lent_, taken);
    size_t const previous_bytes = capacity_.exchange(taken ? bytes : 0, std::memory_order_relaxed);
    if (previous) allocator_.free(allocator_.handle, previous, previous_bytes);
    return static_cast<std::byte *>(taken);
}

uform_status_t uform_arena_t::pin(uint64_t generation) noexcept {
    uint64_t state = state_.load(std::memory_order_acquire);
    do {
        uint64_t const now = generation_.load(std::memory_order_acquire);
        if (now != generation || (state & generation_mask_k) != generation << generation_shift_k)
            return fail(uform_invalid_argument_k, UFORM_NO_ITEM,
                        "arena: rewound by a later call, so its outputs of before are gone");
        if (is_busy(state)) return fail(uform_contended_k, UFORM_NO_ITEM, "arena: it serves another call");
        if (pins_of(state) == pins_limit_k - 1)
            return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "arena: pinned too many times");
    } while (!state_.compare_exchange_weak(state, state + pin_k, std::memory_order_acq_rel, std::memory_order_acquire));
    return uform_success_k;
}

void uform_arena_t::unpin() noexcept {
    uint64_t const state = state_.fetch_sub(pin_k, std::memory_order_acq_rel) - pin_k;
    if ((state & freed_k) && pins_of(state) == 0) delete this;
}

void uform_arena_t::retire() noexcept {
    uint64_t state = state_.load(std::memory_order_acquire);
    do
        while (is_busy(state)) {
            state_.wait(state, std::memory_order_acquire);
            state = state_.load(std::memory_order_acquire);
        }
    while (!state_.compare_exchange_weak(state, state | freed_k, std::memory_order_acq_rel, std::memory_order_acquire));
    if (pins_of(state) == 0) delete this;
}

uform_status_t uform_arena_init(uform_executor_t *executor, uform_arena_t **arena) {
    (void)executor; // All executors of this build compute in host memory.
    if (!arena) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arena: must not be NULL");
    uform_arena_t *made = new (std::nothrow) uform_arena_t;
    if (!made) return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "arena: no memory for it");
    watch_forks();
    *arena = made;
    return uform_success_k;
}

uform_status_t uform_arena_init_over(uform_allocator_t const *allocator, uform_arena_t **arena) {
    if (!arena) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arena: must not be NULL");
    if (!allocator || !allocator->allocate || !allocator->free)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "allocator: needs both of its functions");
    uform_arena_t *made = new (std::nothrow) uform_arena_t {*allocator};
    if (!made) return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "arena: no memory for it");
    watch_forks();
    *arena = made;
    return uform_success_k;
}

uint64_t uform_arena_generation(uform_arena_t const *arena) { return arena->generation(); }

size_t uform_arena_capacity(uform_arena_t const *arena) { return arena->capacity(); }

bool uform_arena_busy(uform_arena_t const *arena) { return arena->busy(); }

size_t uform_arena_pins(uform_arena_t const *arena) { return arena->pins(); }

uform_status_t uform_arena_pin(uform_arena_t *arena, uint64_t generation) { return arena->pin(generation); }

void uform_arena_unpin(uform_arena_t *arena) { arena->unpin(); }

void uform_arena_free(uform_arena_t *arena) {
    if (arena) arena->retire();
}
