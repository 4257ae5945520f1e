#include "text_call.h"

#include <algorithm>
#include <cstring>

#include "../core/failure.h"
#include "../model/forward.h"
#include "surfaces.h"

namespace uform {
namespace {

/** Sizes of a batch, known before anything is allocated. */
struct extent_t {
    size_t segments = 0; /**< Texts that have a token. */
    size_t tokens = 0;
    size_t truncated = 0; /**< Texts. */
};

/** A text's segment: its bytes up to the context, and the query token where choices are scored. */
segment_t segment_of(text_call_t const &call, size_t item) noexcept {
    bool const query = call.probabilities != nullptr;
    size_t const begin = call.texts.offsets[item], length = call.texts.offsets[item + 1] - begin;
    segment_t segment;
    segment.bytes = length ? static_cast<uint8_t const *>(call.texts.data) + begin : nullptr;
    segment.byte_count = std::min(length, call.model->config.context - query);
    segment.query = query;
    segment.item = item;
    return segment;
}

/** Sums cannot overflow: a tape's items do not overlap, and its offsets take more memory than query tokens count. */
extent_t measure(text_call_t const &call) noexcept {
    extent_t extent;
    for (size_t item = 0; item != call.texts.count; ++item) {
        segment_t const segment = segment_of(call, item);
        extent.segments += segment.tokens() != 0;
        extent.tokens += segment.tokens();
        extent.truncated += segment.byte_count != call.texts.offsets[item + 1] - call.texts.offsets[item];
    }
    return extent;
}

/** Fills in the segments, and the rows where the items' tokens begin if `offsets` is given. */
void plan(text_call_t const &call, segment_t *segments, size_t *offsets) noexcept {
    size_t row = 0;
    for (size_t item = 0; item != call.texts.count; ++item) {
        segment_t segment = segment_of(call, item);
        segment.row = row;
        if (offsets) offsets[item] = row;
        row += segment.tokens();
        if (segment.tokens()) *segments++ = segment;
    }
    if (offsets) offsets[call.texts.count] = row;
}

} // namespace

uform_status_t text_call_t::run(arena_hold_t const &arena, team_t &team) const noexcept {
    config_t const &config = model->config;
    size_t const count = texts.count, scalar_bytes = uform_scalar_size(scalar);
    arena->rewind();

    extent_t const extent = measure(*this);
    size_t const choices_count = probabilities && count ? choices.offsets[count] : 0;
    bool const has_offsets = states || token_vectors;
    layout_t layout;
    size_t const embeddings_at = layout.add(embeddings ? count : 0, config.dimensions * scalar_bytes);
    size_t const states_at = layout.add(states ? extent.tokens : 0, config.hidden * scalar_bytes);
    size_t const token_vectors_at = layout.add(token_vectors ? extent.tokens : 0, config.token_width * scalar_bytes);
    size_t const probabilities_at = layout.add(choices_count, sizeof(float));
    size_t const offsets_at = layout.add(has_offsets || probabilities ? count + 1 : 0, sizeof(size_t));
    layout_t plan_layout;
    plan_layout.add(extent.segments, sizeof(segment_t));
    size_t const groups_at = plan_layout.add(extent.segments, sizeof(group_t));
    if (layout.overflows() || plan_layout.overflows())
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "texts: their outputs have more bytes than memory can");

    std::byte *const plan_memory = arena->plan.reserve(plan_layout.bytes());
    auto *const segments = reinterpret_cast<segment_t *>(plan_memory);
    if (!segments) return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "texts: no memory to plan %zu of them", count);
    std::byte *const data = arena->land(layout.bytes());
    if (!data) return last_failure().status;
    auto *const offsets = reinterpret_cast<size_t *>(data + offsets_at);
    plan(*this, segments, has_offsets ? offsets : nullptr);
    if (probabilities) {
        offsets[0] = 0;
        if (count) std::memcpy(offsets, choices.offsets, (count + 1) * sizeof(size_t));
    }
    // Zero is all bits clear in each scalar.
    if (embeddings && extent.segments != count)
        for (size_t item = 0; item != count; ++item)
            if (texts.offsets[item] == texts.offsets[item + 1])
                std::memset(data + embeddings_at + item * config.dimensions * scalar_bytes, 0,
                            config.dimensions * scalar_bytes);

    if (extent.segments) {
        batch_t batch;
        batch.segments = segments;
        batch.count = extent.segments;
        batch.groups = reinterpret_cast<group_t *>(plan_memory + groups_at);
        batch.scalar = scalar;
        if (embeddings) batch.embeddings = data + embeddings_at;
        if (states) batch.states = data + states_at;
        if (token_vectors) batch.token_vectors = data + token_vectors_at;
        if (probabilities) {
            batch.choices = static_cast<uint8_t const *>(choices.data);
            batch.choice_offsets = offsets;
            batch.temperature_groups = temperature_groups;
            batch.probabilities = reinterpret_cast<float *>(data + probabilities_at);
        }
        batch.progress = progress;
        batch.progress_context = progress_context;
        batch.completed = count - extent.segments;
        batch.total = count;
        switch (uform_status_t const status = forward(*model, cpu_class, batch, team)) {
        case uform_success_k: break;
        case uform_cancelled_k: return cancelled();
        case uform_out_of_memory_k: return fail(status, UFORM_NO_ITEM, "texts: no memory for the forward pass");
        default: return fail(status, UFORM_NO_ITEM, "texts: the forward pass ended with %s", uform_status_name(status));
        }
    }
    else if (count && progress && !progress(progress_context, count, count)) {
        return cancelled();
    }

    uint64_t const generation = arena->generation();
    if (embeddings) *embeddings = rows_at(data + embeddings_at, count, config.dimensions, scalar, generation);
    if (states) *states = {rows_at(data + states_at, extent.tokens, config.hidden, scalar, generation), offsets, count};
    if (token_vectors)
        *token_vectors = {rows_at(data + token_vectors_at, extent.tokens, config.token_width, scalar, generation),
                          offsets, count};
    if (probabilities)
        *probabilities = {rows_at(data + probabilities_at, choices_count, 1, uform_f32_k, generation), offsets, count};
    if (stats) *stats = {extent.truncated, extent.tokens};
    return uform_success_k;
}

} // namespace uform
