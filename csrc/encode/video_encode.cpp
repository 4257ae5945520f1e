#include "uform/encode.h"

#include "../media/library.h"
#include "media_call.h"
#include "video_source.h"

namespace {

using namespace uform;

struct files_call_t : media_files_call_t<clips_codecs_t> {
    uform_video_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        return media_call_t::run(video_files_t(model->config, files, limits, *codecs), "files", arena, team, stats);
    }
};

} // namespace

uform_status_t uform_video_encode(uform_model_t const *model, uform_video_encode_t const *arguments) {
    files_call_t call;
    if (uform_status_t const status = read_files(model, arguments, modality_t::video_k, clips_codecs, call))
        return status;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}
