/** The module `uform._uform`: the C ABI as Python's objects. */
#include "call.h"
#include "progress.h"

PYBIND11_MODULE(_uform, module) {
    using namespace uform::python;
    module.doc() = "The binding of libuform; its names are those of the package `uform`.";
    // Signatures stand in the docstrings, where `inspect` finds them.
    py::options options;
    options.disable_function_signatures();
    module.def("version", uform_version, "version()\n--\n\nThe version of the library, as \"major.minor.patch\".");
    bind_types(module);
    receivers_t receivers(module);
    bind_model(receivers);
    bind_encode(module, receivers);
    watch_exit();
}
