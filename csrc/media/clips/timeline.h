/** When a video's frames are on show, from its packets, and which of them are wanted. */
#pragma once
#include "media/clips/source.h"

namespace uform {

class timeline_t {
  public:
    timeline_t() noexcept = default;
    ~timeline_t() noexcept { av_free(picks_); }
    timeline_t(timeline_t const &) = delete;
    timeline_t &operator=(timeline_t const &) = delete;

    /** Reads the packets of an opened video until no later one can matter. */
    uform_status_t scan(source_t &source, sampling_t sampling, limits_t const &limits, fault_t &fault) noexcept;

    /** How many frames are picked; one may be picked again and again. */
    size_t picked() const noexcept { return picked_; }
    /** Whether the video goes on behind the last one. */
    bool truncated() const noexcept { return truncated_; }
    /** The time of the frame that is picked for `index`, in the track's units. Never decreases. */
    int64_t pick(size_t index) const noexcept { return picks_[index]; }
    /** Whether any pick is at that time. */
    bool picks(int64_t time) const noexcept;

  private:
    int64_t *picks_ = nullptr;
    size_t picked_ = 0;
    bool truncated_ = false;
};

} // namespace uform
