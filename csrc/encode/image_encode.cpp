#include "uform/encode.h"

#include "../core/tape.h"
#include "../media/library.h"
#include "image_source.h"
#include "media_call.h"

namespace {

using namespace uform;

uform_image_encode_stats_t stats_of(media_tally_t const &tally) noexcept {
    return {tally.truncated, tally.tokens, tally.malformed, tally.bytes};
}

struct files_call_t : media_call_t {
    uform_tape_t files {};
    limits_t limits;
    images_codecs_t const *codecs = nullptr;
    uform_image_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        media_tally_t tally;
        image_files_t source(model->config.image, files, limits, *codecs);
        source.name = "files";
        uform_status_t const status = media_call_t::run(source, arena, team, tally);
        if (!status && stats) *stats = stats_of(tally);
        return status;
    }
};

struct pixels_call_t : media_call_t {
    uform_pixels_t const *pixels = nullptr;
    uform_image_encode_stats_t *stats = nullptr;

    uform_status_t run(arena_hold_t const &arena, team_t &team) const noexcept {
        media_tally_t tally;
        image_pixels_t source(model->config.image, pixels);
        source.name = "pixels";
        uform_status_t const status = media_call_t::run(source, arena, team, tally);
        if (!status && stats) *stats = stats_of(tally);
        return status;
    }
};

} // namespace

uform_status_t uform_image_encode(uform_model_t const *model, uform_image_encode_t const *arguments) {
    files_call_t call;
    if (uform_status_t const status = read_arguments(model, arguments, modality_t::image_k, call)) return status;
    if (uform_status_t const status = check_tape(arguments->files, "files")) return status;
    if (uform_status_t const status = images_codecs(call.codecs)) return status;
    call.files = arguments->files;
    call.count = arguments->files.count;
    call.limits = limits_of(arguments->limits);
    call.faults = arguments->faults;
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
