/** The module `uform._uform`: the C ABI as Python's objects. */
#include "call.h"
#include "gil.h"
#include "outputs.h"

PYBIND11_MODULE(_uform, module) {
    using namespace uform::python;
    namespace py = pybind11;
    module.doc() = "The binding of libuform; its names are those of the package `uform`.";
    // Signatures stand in the docstrings, where `inspect` finds them.
    py::options options;
    options.disable_function_signatures();
    module.def("version", uform_version, "version()\n--\n\nThe version of the library, as \"major.minor.patch\".");
    bind_types(module);
    receivers_t receivers(module);
    bind_model(receivers);
    py::object const default_outputs = outputs_t::bind(module);
    bind_encode(module, receivers, default_outputs);
    bind_media(module, receivers, default_outputs);
    bind_rank(module);
    // To users the classes are the package's.
    for (auto [name, value] : py::dict(module.attr("__dict__")))
        if (py::isinstance<py::type>(value)) value.attr("__module__") = "uform";
    watch_exit();
}
