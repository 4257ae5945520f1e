#include "uform/encode.h"

#include "../core/tape.h"
#include "../media/library.h"
#include "media_call.h"
#include "video_source.h"

namespace {

using namespace uform;

struct video_call_t : media_call_t {
    uform_tape_t files {};
    limits_t limits;
    clips_codecs_t const *codecs = nullptr;
    uform_video_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        media_tally_t tally;
        video_files_t source(model->config, files, limits, *codecs);
        source.name = "files";
        uform_status_t const status = media_call_t::run(source, arena, team, tally);
        if (!status && stats) *stats = {tally.truncated, tally.tokens, tally.malformed, tally.bytes, tally.extent};
        return status;
    }
};

} // namespace

uform_status_t uform_video_encode(uform_model_t const *model, uform_video_encode_t const *arguments) {
    video_call_t call;
    if (uform_status_t const status = read_arguments(model, arguments, modality_t::video_k, call)) return status;
    if (uform_status_t const status = check_tape(arguments->files, "files")) return status;
    if (uform_status_t const status = clips_codecs(call.codecs)) return status;
    call.files = arguments->files;
    call.count = arguments->files.count;
    call.limits = limits_of(arguments->limits);
    call.faults = arguments->faults;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}
