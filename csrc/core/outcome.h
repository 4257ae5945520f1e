/** A deferred call's result, shared between the thread that runs it and the handle. */
#pragma once
#include <atomic>
#include <cstdint>

#include "uform/types.h"

/** Made by the submitting thread, finished once by the running one, released by the handle's owner. */
struct uform_outcome_t {
  public:
    uform_outcome_t() noexcept;
    uform_outcome_t(uform_outcome_t const &) = delete;
    uform_outcome_t &operator=(uform_outcome_t const &) = delete;

    /** Makes the call final. The object may be gone once this returns. */
    void finish(uform_failure_t const &failure) noexcept;

    /** Blocks until the call is final. */
    void wait() const noexcept;

    /** SUCCESS or a failure once final; before that, DEFERRED and no message. */
    uform_failure_t failure() const noexcept;
    uform_status_t status() const noexcept;

  private:
    /** In the child of a fork, the thread that would have finished the call does not exist. */
    bool orphaned() const noexcept;

    std::atomic<uint32_t> final_ {0};
    uint32_t const epoch_;
    uform_failure_t failure_ {uform_deferred_k, UFORM_NO_ITEM, {}};
};
