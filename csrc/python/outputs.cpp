#include "outputs.h"

#include "enumerations.h"
#include "views.h"

namespace uform::python {

outputs_t::outputs_t(py::handle outputs, py::handle scalar) {
    if (!PyIndex_Check(outputs.ptr()))
        raise_type(UFORM_NO_ITEM, "outputs: a uform.Outputs is needed, not %s", type_name(outputs));
    size_t const kept = size_argument(outputs, "outputs");
    if (kept & ~size_t(all_k))
        raise(uform_unknown_kind_k, UFORM_NO_ITEM, "outputs: %zu has bits that are no output", kept);
    kept_ = static_cast<unsigned>(kept);
    scalar_ = static_cast<uform_scalar_t>(scalar_enumeration.number(scalar, "outputs_scalar"));
}

py::object outputs_t::result(arena_handle_t const &arena) const {
    py::object embeddings = py::none(), states = py::none(), token_vectors = py::none();
    if (kept_ & embeddings_k) embeddings = py::cast(arena_buffer_t(arena, embeddings_));
    if (kept_ & states_k) states = py::cast(rows_tape_t(arena, states_));
    if (kept_ & token_vectors_k) token_vectors = py::cast(rows_tape_t(arena, token_vectors_));
    return py::module_::import("uform.encode").attr("EncodedBatch")(embeddings, states, token_vectors);
}

py::object outputs_t::bind(py::module_ &module) {
    py::dict members;
    members["EMBEDDINGS"] = unsigned(embeddings_k);
    members["STATES"] = unsigned(states_k);
    members["TOKEN_VECTORS"] = unsigned(token_vectors_k);
    return make_enumeration(module, "IntFlag", "Outputs", members, "Surfaces that a call keeps.").attr("EMBEDDINGS");
}

} // namespace uform::python
