#include "uform/encode.h"

#include "../media/library.h"
#include "image_source.h"
#include "media_call.h"

namespace {

using namespace uform;

struct files_call_t : media_files_call_t<images_codecs_t> {
    uform_image_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        return media_call_t::run(image_files_t(model->config.image, files, limits, *codecs), "files", arena, team,
                                 stats);
    }
};

struct pixels_call_t : media_call_t {
    uform_pixels_t const *pixels = nullptr;
    uform_image_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        return media_call_t::run(image_pixels_t(model->config.image, pixels), "pixels", arena, team, stats);
    }
};

} // namespace

uform_status_t uform_image_encode(uform_model_t const *model, uform_image_encode_t const *arguments) {
    files_call_t call;
    if (uform_status_t const status = read_files(model, arguments, modality_t::image_k, images_codecs, call))
        return status;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}

uform_status_t uform_image_encode_pixels(uform_model_t const *model, uform_image_encode_pixels_t const *arguments) {
    pixels_call_t call;
    if (uform_status_t const status = read_arguments(model, arguments, modality_t::image_k, call)) return status;
    if (!arguments->pixels && arguments->count)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "pixels: NULL, but there are %zu items", arguments->count);
    call.pixels = arguments->pixels;
    call.count = arguments->count;
    call.stats = arguments->stats;
    return dispatch(call, arguments->executor, arguments->completion, *arguments->arena);
}
