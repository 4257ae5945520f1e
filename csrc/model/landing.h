/** The end of the forward pass: final norm, surfaces in the caller's scalar, pooling, and the model's heads. */
#pragma once
#include "layers.h"

namespace uform {

struct landing_t {
    layers_t const &layers;
    batch_t const &batch;

    /** Final norm of the tokens, in place; their states and token vectors where they are wanted. */
    void states(range_t tokens) const noexcept;
    /** Means of segments' states, or the state of their query token: a range of columns, in steps of 32. */
    void pool(range_t segments, range_t columns) const noexcept;
    /** Embeddings or probabilities of all segments, from what `pool` left. */
    void heads() const noexcept;

  private:
    void token_vectors(range_t tokens) const noexcept;
    void land(float const *rows, range_t tokens, size_t columns, void *surface) const noexcept;
};

} // namespace uform
