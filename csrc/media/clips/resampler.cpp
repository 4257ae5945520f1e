#include "media/clips/resampler.h"

#include <algorithm>
#include <climits>

#include "media/clips/source.h"

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
    uint8_t *out = reinterpret_cast<uint8_t *>(samples_ + count_);
    uint8_t const *in = reinterpret_cast<uint8_t const *>(mono);
    int const space = int(std::min<size_t>(capacity_ - count_, INT_MAX));
    int const code = swr_convert(context_.get(), &out, space, mono ? &in : nullptr, int(count));
    if (code < 0) return refuse_code(fault, code, "resampling");
    count_ += size_t(code);
    return uform_success_k;
}

uform_status_t resampler_t::finish(fault_t &fault) noexcept {
    size_t const expected = size_t(std::min<uint64_t>(capacity_, resampled(pushed_, from_, to_)));
    if (count_ < expected)
        if (uform_status_t const status = push(nullptr, 0, fault)) return status;
    // The filter may round the length down.
    while (count_ < expected) samples_[count_++] = 0;
    count_ = expected;
    return uform_success_k;
}

} // namespace uform
