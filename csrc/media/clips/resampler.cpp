#include "media/clips/resampler.h"

#include <algorithm>
#include <climits>
#include <cstring>
#include <new>

#include "media/clips/source.h"
#include "media/fault.h"

extern "C" {
#include <libavutil/channel_layout.h>
}

namespace uform {

uform_status_t resampler_t::open(uint32_t from, uint32_t to, fault_t &fault) noexcept {
    from_ = from, to_ = to;
    if (from == to) return uform_success_k;
    AVChannelLayout const mono = AV_CHANNEL_LAYOUT_MONO;
    SwrContext *context = nullptr;
    int code = swr_alloc_set_opts2(&context, const_cast<AVChannelLayout *>(&mono), AV_SAMPLE_FMT_FLT, int(to),
                                   const_cast<AVChannelLayout *>(&mono), AV_SAMPLE_FMT_FLT, int(from), 0, nullptr);
    context_.reset(context);
    if (code >= 0) code = swr_init(context);
    if (code < 0) return refuse_code(fault, code, "opening the resampler");
    // The filter has 32 taps at the lower of both rates.
    reach_ = 64 * (size_t(std::max(from, to)) / to + 1);
    last_.reset(new (std::nothrow) float[2 * reach_]);
    if (!last_) return refuse(fault, uform_out_of_memory_k, "no memory for the resampler");
    return uform_success_k;
}

uform_status_t resampler_t::push(float const *mono, size_t count, fault_t &fault) noexcept {
    pushed_ += count;
    if (!context_) {
        size_t const taken = std::min(count, capacity_ - count_);
        std::copy_n(mono, taken, samples_ + count_);
        count_ += taken;
        return uform_success_k;
    }
    size_t const before = size_t(std::min<uint64_t>(pushed_ - count, reach_));
    size_t const taken = std::min(count, reach_), kept = std::min(before, reach_ - taken);
    std::memmove(last_.get(), last_.get() + before - kept, kept * sizeof(float));
    std::copy_n(mono + count - taken, taken, last_.get() + kept);
    return convert(mono, count, fault);
}

uform_status_t resampler_t::convert(float const *mono, size_t count, fault_t &fault) noexcept {
    uint8_t *out = reinterpret_cast<uint8_t *>(samples_ + count_);
    uint8_t const *in = reinterpret_cast<uint8_t const *>(mono);
    int const space = int(std::min<size_t>(capacity_ - count_, INT_MAX));
    int const code = swr_convert(context_.get(), &out, space, &in, int(count));
    if (code < 0) return refuse_code(fault, code, "resampling");
    count_ += size_t(code);
    return uform_success_k;
}

uform_status_t resampler_t::finish(fault_t &fault) noexcept {
    size_t const expected = size_t(std::min<uint64_t>(capacity_, resampled(pushed_, from_, to_)));
    if (count_ < expected) {
        // The filter waits for what follows: the last samples mirrored, as often as it takes.
        size_t const kept = size_t(std::min<uint64_t>(pushed_, reach_)), period = std::max<size_t>(2 * kept, 3) - 2;
        float *const mirrored = last_.get() + reach_;
        for (size_t index = 0; index != reach_; ++index) {
            size_t const back = (index + 1) % period;
            mirrored[index] = last_[kept - 1 - std::min(back, period - back)];
        }
        if (uform_status_t const status = convert(mirrored, reach_, fault)) return status;
    }
    if (count_ < expected) return refuse(fault, uform_internal_k, "%zu samples of %zu", count_, expected);
    count_ = expected;
    return uform_success_k;
}

uform_status_t resample(float const *from, size_t from_count, uint32_t from_rate, uint32_t rate, size_t most_samples,
                        float *samples, size_t &count, fault_t &fault) noexcept {
    constexpr size_t step_k = size_t(1) << 20; // FFmpeg counts samples with an int.
    quiet_t const quiet;
    count = 0;
    resampler_t resampler(samples, most_samples);
    uform_status_t status = resampler.open(from_rate, rate, fault);
    for (size_t begin = 0; !status && begin != from_count && !resampler.full();) {
        size_t const some = std::min(step_k, from_count - begin);
        status = resampler.push(from + begin, some, fault);
        begin += some;
    }
    if (!status) status = resampler.finish(fault);
    if (!status) count = resampler.count();
    return status;
}

} // namespace uform
