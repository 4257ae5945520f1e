#include "uform/encode.h"

#include "../media/library.h"
#include "../media/mel.h"
#include "audio_source.h"
#include "media_call.h"

namespace {

using namespace uform;

constexpr uint32_t least_rate_k = 1000, most_rate_k = 768000;

struct files_call_t : media_files_call_t<clips_codecs_t> {
    uform_audio_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        return media_call_t::run(audio_files_t(model->config, files, limits, *codecs), "files", arena, team, stats);
    }
};

struct samples_call_t : media_call_t {
    uform_samples_t const *samples = nullptr;
    uint32_t rate = 0;
    clips_codecs_t const *codecs = nullptr;
    uform_audio_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        return media_call_t::run(audio_samples_t(model->config, samples, rate, codecs), "samples", arena, team, stats);
    }
};

} // namespace

uform_status_t uform_audio_encode(uform_model_t const *model, uform_audio_encode_t const *arguments) {
    files_call_t call;
    if (uform_status_t const status = read_files(model, arguments, modality_t::audio_k, clips_codecs, call))
        return status;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}

uform_status_t uform_audio_encode_samples(uform_model_t const *model, uform_audio_encode_samples_t const *arguments) {
    samples_call_t call;
    if (uform_status_t const status = read_arguments(model, arguments, modality_t::audio_k, call)) return status;
    uint32_t const rate = arguments->sample_rate;
    if (rate < least_rate_k || rate > most_rate_k)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "sample_rate: %u Hz is not from %u to %u", rate,
                    least_rate_k, most_rate_k);
    if (!arguments->samples && arguments->count)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "samples: NULL, but there are %zu items",
                    arguments->count);
    if (rate != mel_sample_rate_k)
        if (uform_status_t const status = clips_codecs(call.codecs)) return status;
    call.samples = arguments->samples;
    call.count = arguments->count;
    call.rate = rate;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}
