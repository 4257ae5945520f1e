#include "media/clips/timeline.h"

#include <algorithm>
#include <cmath>

#include "media/fault.h"

namespace uform {
namespace {

constexpr size_t most_packets_k = size_t(1) << 20;
/** No camera's, and a bound of what a few bytes can make a decoder do. */
constexpr double most_rate_k = 1000;
/** Times that far off are noise, and would round badly. */
constexpr double most_seconds_k = 1e9;
/** Decoders reorder by 16 frames at the most: so many in a row that are late tell that no earlier one will follow. */
constexpr size_t late_packets_k = 64;

/** Grows by doubling; false without memory. */
class times_t {
  public:
    times_t() noexcept = default;
    ~times_t() noexcept { av_free(values_); }
    times_t(times_t const &) = delete;
    times_t &operator=(times_t const &) = delete;

    bool push(int64_t value) noexcept {
        if (count_ == capacity_) {
            size_t const capacity = capacity_ ? 2 * capacity_ : 256;
            void *const grown = av_realloc_array(values_, capacity, sizeof(int64_t));
            if (!grown) return false;
            values_ = static_cast<int64_t *>(grown), capacity_ = capacity;
        }
        values_[count_++] = value;
        return true;
    }

    int64_t *begin() noexcept { return values_; }
    int64_t *end() noexcept { return values_ + count_; }
    size_t size() const noexcept { return count_; }

  private:
    int64_t *values_ = nullptr;
    size_t count_ = 0, capacity_ = 0;
};

} // namespace

uform_status_t timeline_t::scan(source_t &source, sampling_t sampling, limits_t const &limits,
                                fault_t &fault) noexcept {
    if (!(sampling.rate > 0) || !std::isfinite(sampling.rate))
        return refuse(fault, uform_invalid_argument_k, "%g frames a second are asked for", sampling.rate);
    packet_ptr_t const packet(av_packet_alloc());
    if (!packet) return refuse_code(fault, AVERROR(ENOMEM), "reading");
    double const unit = av_q2d(source.track().time_base); // Seconds.
    double const wanted = double(sampling.most_frames) / sampling.rate;

    times_t times;
    int64_t first = INT64_MAX, last = INT64_MIN, last_duration = 0;
    size_t late = 0;
    while (late != late_packets_k) {
        bool ended = false;
        if (uform_status_t const status = source.next(*packet, ended, fault)) return status;
        if (ended) break;
        // Frames without a time lie before the beginning, for others to refer to.
        int64_t const time = packet->pts;
        if ((packet->flags & AV_PKT_FLAG_DISCARD) || !packet->size || time == AV_NOPTS_VALUE) continue;
        if (std::abs(double(time) * unit) > most_seconds_k)
            return refuse(fault, uform_malformed_k, "a frame at %g seconds", double(time) * unit);
        if (times.size() == most_packets_k)
            return refuse(fault, uform_malformed_k, "more than %zu frames", most_packets_k);
        if (!times.push(time)) return refuse_code(fault, AVERROR(ENOMEM), "reading");
        first = std::min(first, time);
        if (time > last) last = time, last_duration = packet->duration;
        if (double(last - first) * unit > double(limits.seconds))
            return refuse(fault, uform_malformed_k, "longer than the limit of %llu seconds",
                          static_cast<unsigned long long>(limits.seconds));
        if (double(times.size()) > most_rate_k * (1 + double(last - first) * unit))
            return refuse(fault, uform_malformed_k, "more than %g frames a second", most_rate_k);
        late = double(time - first) * unit > wanted ? late + 1 : 0;
    }
    if (!times.size()) return refuse(fault, uform_malformed_k, "no frames with a time in it");

    std::sort(times.begin(), times.end());
    int64_t *const end = std::unique(times.begin(), times.end());
    size_t const shown = size_t(end - times.begin());
    // A last frame without a duration is shown as long as the one before.
    if (last_duration <= 0) last_duration = shown > 1 ? end[-1] - end[-2] : 1;
    double const length = (double(last - first) + double(last_duration)) * unit;
    // What rounding may take from a time, far less than the track's unit.
    double const slack = unit * 1e-6;
    double const due = std::max(1., std::ceil((length - slack) * sampling.rate));
    truncated_ = due > double(sampling.most_frames);
    size_t const count = truncated_ ? sampling.most_frames : size_t(due);

    picks_ = static_cast<int64_t *>(av_malloc_array(std::max<size_t>(count, 1), sizeof(int64_t)));
    if (!picks_) return refuse_code(fault, AVERROR(ENOMEM), "choosing frames");
    int64_t const *shown_now = times.begin();
    for (size_t index = 0; index != count; ++index) {
        double const now = double(index) / sampling.rate + slack;
        while (shown_now + 1 != end && double(shown_now[1] - first) * unit <= now) ++shown_now;
        picks_[index] = *shown_now;
    }
    picked_ = count;
    return uform_success_k;
}

bool timeline_t::picks(int64_t time) const noexcept { return std::binary_search(picks_, picks_ + picked_, time); }

} // namespace uform
