/**
 *  The threads of one call, and their scratch. An executor lends its own; a call on the calling thread has a team of
 *  one. Code that runs on a team sees slots, never threads.
 */
#pragma once
#include <cstddef>
#include <type_traits>

namespace uform {

class team_t {
  public:
    using body_t = void (*)(void *context, size_t slot) noexcept;

    virtual ~team_t() = default;

    /** Slots that `run` calls its body on. */
    virtual size_t threads() const noexcept = 0;

    /**
     *  Calls `body(context, slot)` for every slot below `threads()`, at once, and returns when all have returned.
     *  Bodies find the default floating-point environment, whatever that of the calling thread is.
     */
    virtual void run(body_t body, void *context) noexcept = 0;

    /** Inside a body: waits until every slot has come here. Spins, then yields: calls are short. */
    virtual void barrier() noexcept = 0;

    /**
     *  At least `bytes` bytes aligned to 64, kept from call to call, that belong to the slot; slot `threads()` is the
     *  shared scratch, to be grown outside of bodies. Growing loses the contents. nullptr: out of memory.
     */
    virtual std::byte *scratch(size_t slot, size_t bytes) noexcept = 0;

    /** `run` for a callable: `run_each([&](size_t slot) noexcept { ... })`. */
    template <typename callable_type_> void run_each(callable_type_ &&callable) noexcept {
        using callable_t = std::remove_reference_t<callable_type_>;
        run([](void *context, size_t slot) noexcept { (*static_cast<callable_t *>(context))(slot); }, &callable);
    }
};

} // namespace uform
