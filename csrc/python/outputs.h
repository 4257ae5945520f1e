/** Surfaces that a call of an encoding verb keeps, and how they come back. */
#pragma once
#include <pybind11/pybind11.h>

#include "uform/types.h"

#include "handles.h"

namespace uform::python {

/** The arguments `outputs` and `outputs_scalar`, and what the library writes for them. It stays where it is. */
class outputs_t {
  public:
    outputs_t(py::handle outputs, py::handle scalar);
    outputs_t(outputs_t const &) = delete;
    outputs_t &operator=(outputs_t const &) = delete;

    /** Fills in what the argument structures of all encoding verbs share. */
    template <typename arguments_type_> void fill(arguments_type_ &arguments) noexcept {
        arguments.outputs_scalar = scalar_;
        if (kept_ & embeddings_k) arguments.embeddings = &embeddings_;
        if (kept_ & states_k) arguments.states = &states_;
        if (kept_ & token_vectors_k) arguments.token_vectors = &token_vectors_;
    }

    /** An `EncodedBatch`, once the call has succeeded. */
    py::object result(arena_handle_t const &arena) const;

    /** Adds the class `Outputs`, and returns the member that verbs default to. */
    static py::object bind(py::module_ &module);

  private:
    enum : unsigned { embeddings_k = 1, states_k = 2, token_vectors_k = 4, all_k = 7 };

    unsigned kept_;
    uform_scalar_t scalar_;
    uform_rows_t embeddings_ {};
    uform_rows_tape_t states_ {}, token_vectors_ {};
};

} // namespace uform::python
