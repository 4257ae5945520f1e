#include "landing.h"

#include <algorithm>

#include "../kernels/choose/choose.h"
#include "../kernels/convert/convert.h"

namespace uform {

void landing_t::states(range_t tokens) const noexcept {
    workspace_t const &group = layers.group;
    size_t const hidden = layers.model.config.hidden;
    normalize_t arguments;
    arguments.rows = arguments.states = group.residual + tokens.begin * hidden;
    arguments.count = tokens.size();
    arguments.columns = hidden;
    arguments.gain = layers.model.final_norm;
    arguments.epsilon = static_cast<float>(layers.model.config.norm_epsilon);
    if (batch.token_vectors) arguments.activations = layers.row(group.normed, tokens.begin, hidden);
    layers.kernels.normalize(arguments);
    if (batch.states) land(group.residual + tokens.begin * hidden, tokens, hidden, batch.states);
    if (batch.token_vectors) token_vectors(tokens);
}

void landing_t::token_vectors(range_t tokens) const noexcept {
    size_t const hidden = layers.model.config.hidden, width = layers.model.config.token_width;
    for (range_t some {tokens.begin, tokens.begin}; some.begin != tokens.end; some.begin = some.end) {
        some.end = std::min(some.begin + layers.kernels.head_tokens, tokens.end);
        float *vectors = layers.local.block;
        layers.head(layers.model.token_head, layers.row(layers.group.normed, some.begin, hidden), some.size(), vectors);
        layers.kernels.unit(vectors, some.size(), width);
        land(vectors, some, width, batch.token_vectors);
    }
}

void landing_t::land(float const *rows, range_t tokens, size_t columns, void *surface) const noexcept {
    workspace_t const &group = layers.group;
    size_t const *starts = group.starts;
    size_t const size = uform_scalar_size(batch.scalar);
    size_t index =
        static_cast<size_t>(std::upper_bound(starts, starts + group.segment_count, tokens.begin) - starts - 1);
    for (size_t token = tokens.begin; token != tokens.end; ++index) {
        size_t const end = std::min(tokens.end, starts[index + 1]);
        if (end == token) continue; // A segment that was left out.
        size_t const row = group.segments[index].row + (token - starts[index]);
        convert(rows + (token - tokens.begin) * columns, (end - token) * columns, batch.scalar,
                static_cast<std::byte *>(surface) + row * columns * size);
        token = end;
    }
}

void landing_t::pool(range_t segments, range_t columns) const noexcept {
    if (!batch.embeddings && !batch.probabilities) return;
    workspace_t const &group = layers.group;
    size_t const hidden = layers.model.config.hidden;
    pooling_t arguments;
    arguments.columns = hidden;
    arguments.column_begin = columns.begin;
    arguments.column_end = columns.end;
    for (size_t index = segments.begin; index != segments.end; ++index) {
        if (group.starts[index] == group.starts[index + 1]) continue; // Left out.
        // A query token stands last: its state is the mean of the one row that it is.
        size_t const first = batch.probabilities ? group.starts[index + 1] - 1 : group.starts[index];
        arguments.rows = group.residual + first * hidden;
        arguments.count = group.starts[index + 1] - first;
        arguments.activations = layers.row(group.pooled, index, hidden);
        layers.kernels.pool(arguments);
    }
}

void landing_t::heads() const noexcept {
    workspace_t const &group = layers.group;
    uform_model_t const &model = layers.model;
    if (batch.embeddings) {
        size_t const dimensions = model.config.dimensions;
        layers.head(model.embedding_head, group.pooled, group.segment_count, group.results);
        layers.kernels.unit(group.results, group.segment_count, dimensions);
        for (size_t index = 0; index != group.segment_count; ++index) {
            float *const row = group.results + index * dimensions;
            // What was left out has the zero embedding; what was computed for it came from nothing.
            if (group.starts[index] == group.starts[index + 1]) std::fill_n(row, dimensions, 0.f);
            convert(row, dimensions, batch.scalar,
                    static_cast<std::byte *>(batch.embeddings) +
                        group.segments[index].item * dimensions * uform_scalar_size(batch.scalar));
        }
    }
    else if (batch.probabilities) {
        constexpr size_t bytes = 256;
        layers.head(model.byte_head, group.pooled, group.segment_count, group.results);
        for (size_t index = 0; index != group.segment_count; ++index) {
            size_t const item = group.segments[index].item, first = batch.choice_offsets[item];
            size_t const temperature = batch.temperature_groups ? batch.temperature_groups[item] : 0;
            choose(group.results + index * bytes, model.inverse_temperatures[temperature], batch.choices + first,
                   batch.choice_offsets[item + 1] - first, batch.probabilities + first);
        }
    }
}

} // namespace uform
