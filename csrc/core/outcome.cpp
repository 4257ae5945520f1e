#include "outcome.h"

#include "event.h"
#include "process.h"

uform_outcome_t::uform_outcome_t() noexcept : epoch_(uform::process_epoch()) {}

void uform_outcome_t::finish(uform_failure_t const &failure) noexcept {
    failure_ = failure;
    final_.store(1, std::memory_order_release);
    // The owner may have freed it already: waking goes by the address, nothing is read.
    uform::wake_all(final_);
}

bool uform_outcome_t::orphaned() const noexcept {
    return epoch_ != uform::process_epoch() && !final_.load(std::memory_order_acquire);
}

void uform_outcome_t::wait() const noexcept {
    while (!final_.load(std::memory_order_acquire) && !orphaned()) uform::sleep_while(final_, 0);
}

uform_failure_t uform_outcome_t::failure() const noexcept {
    if (final_.load(std::memory_order_acquire)) return failure_;
    if (orphaned())
        return {uform_cancelled_k, UFORM_NO_ITEM, "the call is the parent process's: a forked child has no part in it"};
    return {uform_deferred_k, UFORM_NO_ITEM, {}};
}

uform_status_t uform_outcome_t::status() const noexcept {
    if (final_.load(std::memory_order_acquire)) return failure_.status;
    return orphaned() ? uform_cancelled_k : uform_deferred_k;
}

uform_status_t uform_outcome_status(uform_outcome_t const *outcome) { return outcome->status(); }

uform_status_t uform_outcome_wait(uform_outcome_t *outcome) {
    outcome->wait();
    return outcome->status();
}

void uform_outcome_failure(uform_outcome_t const *outcome, uform_failure_t *failure) { *failure = outcome->failure(); }

void uform_outcome_free(uform_outcome_t *outcome) {
    if (!outcome) return;
    outcome->wait();
    delete outcome;
}
