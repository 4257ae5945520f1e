/**
 *  The operations of a block, each over a range of a group's tokens and of its heads or tiles of outputs, so that a
 *  thread can take all of them or a share. No operation depends on how the group is cut.
 */
#pragma once
#include <cstddef>

#include "workspace.h"

namespace uform {

/** From `begin` up to `end`. */
struct range_t {
    size_t begin = 0;
    size_t end = 0;

    size_t size() const noexcept { return end - begin; }

    /** Part `index` of `count` parts of nearly the same size. */
    range_t part(size_t index, size_t count) const noexcept {
        return {begin + size() * index / count, begin + size() * (index + 1) / count};
    }
};

/** A thread's view of a group at work. */
struct layers_t {
    uform_model_t const &model;
    kernels_t const &kernels;
    workspace_t const &group;
    local_t const &local;
    patches_source_t const *source = nullptr; /**< Media. */

    /** Residual and positions of segments' tokens, from `starts` on: embeddings of their bytes. */
    void embed(range_t segments) const noexcept;
    /** The same of media, and how far the segments reach along time. A failure to decode is noted. */
    uform_status_t embed_media(range_t segments) const noexcept;
    /** RMSNorm of the residual, as activations. */
    void normalize(float const *gain, range_t tokens) const noexcept;
    /** Query, key and value heads, normed and rotated; heads are counted from 0 to 3 * heads. */
    void project(block_t const &block, range_t tokens, range_t heads) const noexcept;
    /** Attention of query heads for those tokens, into `normed`. */
    void attend(block_t const &block, range_t tokens, range_t heads, size_t window) const noexcept;
    /** Adds a matrix's product with activations to the residual. */
    void add(packed_t const &weights, std::byte const *activations, range_t tokens, range_t tiles) const noexcept;
    /** SiLU(gate) * up of the normed tokens; row 0 of `out` is the first of them. */
    void gate(block_t const &block, std::byte *out, range_t tokens, range_t tiles) const noexcept;
    /** Output projection and feed-forward of the tokens, `step` at a time so that activations stay in the cache. */
    void finish_block(block_t const &block, std::byte *gated, range_t tokens, size_t step) const noexcept;

    /** `count` rows of activations times a head's weights, without gaps. */
    void head(packed_t const &weights, std::byte const *activations, size_t count, float *out) const noexcept;

    /** Rotary rows of a grid's tokens: pairs that rotate by time as those of text do, the others by row and column. */
    void place(segment_t const &segment, size_t token, size_t count) const noexcept;

    /** A token's numbers of a head; heads are counted from 0 to 3 * heads. */
    std::byte *head_row(size_t head, size_t token) const noexcept {
        return row(group.heads, head * group.tokens() + token, model.config.head_dimension);
    }

    std::byte *row(std::byte *activations, size_t row, size_t columns) const noexcept {
        return activations + row * columns * kernels.activation_size();
    }
};

} // namespace uform
