#include "layers.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../kernels/convert/convert.h"

namespace uform {

void layers_t::embed(range_t segments) const noexcept {
    size_t const hidden = model.config.hidden;
    constexpr size_t query_row = 256;
    for (size_t index = segments.begin; index != segments.end; ++index) {
        segment_t const &segment = group.segments[index];
        size_t token = group.starts[index];
        for (size_t position = 0; position != segment.tokens(); ++position, ++token) {
            size_t const byte = position < segment.byte_count ? segment.bytes[position] : query_row;
            std::memcpy(group.residual + token * hidden, model.text_embeddings + byte * hidden, hidden * sizeof(float));
            group.positions[token] = static_cast<uint32_t>(position);
        }
    }
}

uform_status_t layers_t::embed_media(range_t segments) const noexcept {
    size_t const hidden = model.config.hidden;
    for (size_t index = segments.begin; index != segments.end; ++index) {
        segment_t const &segment = group.segments[index];
        packed_t const &weights = model.patch_embeddings[size_t(segment.modality)];
        float const *const modality = model.modality_rows + size_t(segment.modality) * hidden;
        size_t const columns = weights.padded_columns(), start = group.starts[index];
        if (uform_status_t const status = source->decode(segment, local.item, group.times[index])) return status;
        size_t const count = group.times[index] * segment.rows * segment.columns;
        // Padding is zero on both sides of the product: nothing is read as a number that is none.
        std::memset(local.patches, 0, local_t::patch_tokens_k * columns * sizeof(float));
        for (size_t first = 0; first < count; first += local_t::patch_tokens_k) {
            size_t const some = std::min(local_t::patch_tokens_k, count - first), token = start + first;
            source->patches(segment, local.item, first, some, local.patches, columns);
            convert(local.patches, some * columns, kernels.activations, local.activations);
            for (size_t row = 0; row != some; ++row)
                std::memcpy(group.residual + (token + row) * hidden, modality, hidden * sizeof(float));
            add(weights, local.activations, {token, token + some}, {0, weights.tiles()});
        }
        place(segment, start, count);
    }
    return uform_success_k;
}

void layers_t::place(segment_t const &segment, size_t token, size_t count) const noexcept {
    size_t const half = model.config.head_dimension / 2, timed = half / 2, sided = half / 4;
    for (size_t index = 0; index != count; ++index, ++token) {
        size_t const column = index % segment.columns, row = index / segment.columns % segment.rows;
        size_t const time = index / segment.columns / segment.rows;
        float const *const by_time = model.rotary + time * 2 * half;
        for (size_t part = 0; part != 2; ++part) {
            float *const out = group.rotary + (2 * token + part) * half;
            std::memcpy(out, by_time + part * half, half * sizeof(float));
            // Sound has no rows and columns, and its model may have no table of them.
            if (segment.modality == modality_t::audio_k) continue;
            std::memcpy(out + timed, model.rotary_grid + (2 * row + part) * sided, sided * sizeof(float));
            std::memcpy(out + timed + sided, model.rotary_grid + (2 * column + part) * sided, sided * sizeof(float));
        }
    }
}

void layers_t::normalize(float const *gain, range_t tokens) const noexcept {
    size_t const hidden = model.config.hidden;
    normalize_t arguments;
    arguments.rows = group.residual + tokens.begin * hidden;
    arguments.count = tokens.size();
    arguments.columns = hidden;
    arguments.gain = gain;
    arguments.epsilon = static_cast<float>(model.config.norm_epsilon);
    arguments.activations = row(group.normed, tokens.begin, hidden);
    kernels.normalize(arguments);
}

void layers_t::project(block_t const &block, range_t tokens, range_t heads) const noexcept {
    config_t const &config = model.config;
    size_t const hidden = config.hidden, dimension = config.head_dimension, tiles = dimension / tile_rows_k;
    linear_t linear;
    linear.activation_stride = hidden;
    linear.weights = &block.qkv;
    linear.epilogue = epilogue_t::store_k;
    linear.out = local.block;
    linear.out_stride = dimension;
    linear.decoded = local.decoded;
    rope_t rope;
    rope.heads = local.block;
    rope.head_dimension = dimension;
    rope.rotary = source ? group.rotary : model.rotary;
    rope.epsilon = static_cast<float>(config.norm_epsilon);
    rope.activation_stride = dimension;
    for (size_t head = heads.begin; head != heads.end; ++head) {
        linear.tile_begin = head * tiles;
        linear.tile_end = linear.tile_begin + tiles;
        size_t const kind = head / config.heads();
        rope.gain = kind == 0 ? block.query_norm : kind == 1 ? block.key_norm : nullptr;
        rope.factor = kind == 0 ? static_cast<float>(config.query_factor()) : 1.f;
        for (size_t token = tokens.begin; token < tokens.end; token += kernels.head_tokens) {
            linear.rows = rope.count = std::min(kernels.head_tokens, tokens.end - token);
            linear.activations = row(group.normed, token, hidden);
            kernels.linear(linear);
            rope.positions = group.positions + token;
            rope.activations = head_row(head, token);
            kernels.rope(rope);
        }
    }
}

void layers_t::attend(block_t const &block, range_t tokens, range_t heads, size_t window) const noexcept {
    size_t const hidden = model.config.hidden, dimension = model.config.head_dimension, count = model.config.heads();
    size_t const *starts = group.starts;
    size_t first =
        static_cast<size_t>(std::upper_bound(starts, starts + group.segment_count, tokens.begin) - starts - 1);
    attention_t attention;
    attention.stride = dimension;
    attention.head_dimension = dimension;
    attention.window = window;
    attention.bounded = block.bounded;
    attention.out_stride = hidden;
    attention.scratch = local.attention;
    for (size_t index = first; index != group.segment_count && starts[index] < tokens.end; ++index) {
        if (starts[index] == starts[index + 1]) continue; // Left out.
        attention.count = starts[index + 1] - starts[index];
        attention.query_begin = std::max(tokens.begin, starts[index]) - starts[index];
        attention.query_end = std::min(tokens.end, starts[index + 1]) - starts[index];
        for (size_t head = heads.begin; head != heads.end; ++head) {
            attention.queries = head_row(head, starts[index]);
            attention.keys = head_row(count + head, starts[index]);
            attention.values = head_row(2 * count + head, starts[index]);
            attention.out = row(group.normed, starts[index], hidden) + head * dimension * kernels.activation_size();
            kernels.attention(attention);
        }
    }
}

void layers_t::add(packed_t const &weights, std::byte const *activations, range_t tokens,
                   range_t tiles) const noexcept {
    size_t const hidden = model.config.hidden;
    linear_t linear;
    linear.activations = activations;
    linear.activation_stride = weights.padded_columns();
    linear.rows = tokens.size();
    linear.weights = &weights;
    linear.tile_begin = tiles.begin;
    linear.tile_end = tiles.end;
    linear.epilogue = epilogue_t::add_k;
    linear.out = group.residual + tokens.begin * hidden + tiles.begin * tile_rows_k;
    linear.out_stride = hidden;
    linear.decoded = local.decoded;
    kernels.linear(linear);
}

void layers_t::gate(block_t const &block, std::byte *out, range_t tokens, range_t tiles) const noexcept {
    size_t const hidden = model.config.hidden, width = model.config.width;
    linear_t linear;
    linear.activations = row(group.normed, tokens.begin, hidden);
    linear.activation_stride = hidden;
    linear.rows = tokens.size();
    linear.weights = &block.gate_up;
    linear.tile_begin = tiles.begin;
    linear.tile_end = tiles.end;
    linear.epilogue = epilogue_t::activate_k;
    linear.out = out + tiles.begin * panel_rows_k * kernels.activation_size();
    linear.out_stride = width;
    linear.decoded = local.decoded;
    kernels.linear(linear);
}

void layers_t::finish_block(block_t const &block, std::byte *gated, range_t tokens, size_t step) const noexcept {
    for (range_t some {tokens.begin, tokens.begin}; some.begin != tokens.end; some.begin = some.end) {
        some.end = std::min(some.begin + step, tokens.end);
        add(block.output, row(group.normed, some.begin, model.config.hidden), some, {0, block.output.tiles()});
        normalize(block.mlp_norm, some);
        gate(block, gated, some, {0, block.gate_up.tiles()});
        add(block.down, gated, some, {0, block.down.tiles()});
    }
}

void layers_t::head(packed_t const &weights, std::byte const *activations, size_t count, float *out) const noexcept {
    linear_t linear;
    linear.activations = activations;
    linear.activation_stride = weights.columns;
    linear.rows = count;
    linear.weights = &weights;
    linear.tile_end = weights.tiles();
    linear.epilogue = epilogue_t::store_k;
    linear.out = out;
    linear.out_stride = weights.rows;
    linear.decoded = local.decoded;
    kernels.linear(linear);
}

} // namespace uform
