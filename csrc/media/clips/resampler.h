/** Mono sound from one rate to another: band-limited, without delay or drift. */
#pragma once
#include <cstdint>
#include <memory>

extern "C" {
#include <libswresample/swresample.h>
}

#include "media/codecs.h"

namespace uform {

/** Samples that `count` of them become: as long, rounded up. */
constexpr uint64_t resampled(uint64_t count, uint32_t from, uint32_t to) noexcept {
    return (count * to + from - 1) / from;
}

/** Writes at most `capacity` samples to `samples`. */
class resampler_t {
  public:
    resampler_t(float *samples, size_t capacity) noexcept : samples_(samples), capacity_(capacity) {}

    uform_status_t open(uint32_t from, uint32_t to, fault_t &fault) noexcept;

    uform_status_t push(float const *mono, size_t count, fault_t &fault) noexcept;

    /** Writes what the filter still holds back: `resampled(pushed)` samples in all, as far as they fit. */
    uform_status_t finish(fault_t &fault) noexcept;

    bool full() const noexcept { return count_ == capacity_; }
    size_t count() const noexcept { return count_; }

  private:
    struct release_t {
        void operator()(SwrContext *context) const noexcept { swr_free(&context); }
    };

    uform_status_t convert(float const *mono, size_t count, fault_t &fault) noexcept;

    float *samples_;
    size_t capacity_;
    size_t count_ = 0;
    uint64_t pushed_ = 0;
    uint32_t from_ = 0, to_ = 0;
    std::unique_ptr<SwrContext, release_t> context_; /**< None where the rates are the same. */
    std::unique_ptr<float[]> last_;                  /**< The last samples that were pushed, `reach_` at the most. */
    size_t reach_ = 0;                               /**< More than the filter spans. */
};

/** See codecs.h. */
uform_status_t resample(float const *from, size_t from_count, uint32_t from_rate, uint32_t rate, size_t most_samples,
                        float *samples, size_t &count, fault_t &fault) noexcept;

} // namespace uform
