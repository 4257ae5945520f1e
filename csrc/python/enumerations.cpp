#include "enumerations.h"

#include "failure.h"

namespace uform::python {

enumeration_t status_enumeration {"Status", "status", uform_status_name, {}};
enumeration_t scalar_enumeration {"Scalar", "scalar", uform_scalar_name, {}};
enumeration_t mood_enumeration {"Mood", "mood", uform_mood_name, {}};
enumeration_t cpu_class_enumeration {"CPUClass", "CPU class", uform_cpu_class_name, {}};
enumeration_t gpu_class_enumeration {"GPUClass", "GPU class", uform_gpu_class_name, {}};
enumeration_t modality_enumeration {"Modality", "modality", uform_modality_name, {}};

namespace {

/** No enumeration has members further from zero. */
constexpr int members_limit_k = 64;

py::dict members_of(enumeration_t const &enumeration) {
    py::dict members;
    for (int number = 0; number != members_limit_k; ++number)
        if (char const *name = enumeration.name_of(number)) members[name] = number;
    for (int number = -1; number != -members_limit_k; --number)
        if (char const *name = enumeration.name_of(number)) members[name] = number;
    return members;
}

} // namespace

py::object enumeration_t::member(int number) const {
    PyObject *const found = PyDict_GetItemWithError(members.ptr(), py::int_(number).ptr());
    return found ? py::reinterpret_borrow<py::object>(found) : py::object(py::none());
}

int enumeration_t::number(py::handle object, char const *argument) const {
    if (!PyIndex_Check(object.ptr()))
        raise_type(UFORM_NO_ITEM, "%s: a uform.%s is needed, not %s", argument, name, type_name(object));
    auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!index) throw py::error_already_set();
    int overflow = 0;
    long const number = PyLong_AsLongAndOverflow(index.ptr(), &overflow);
    if (overflow || number < -members_limit_k || number > members_limit_k || !name_of(static_cast<int>(number)))
        raise(uform_unknown_kind_k, UFORM_NO_ITEM, "%s: %.40s is no %s", argument,
              py::str(index).cast<std::string>().c_str(), what);
    return static_cast<int>(number);
}

int enumeration_t::number_or_default(py::handle object, char const *argument) const {
    return object.is_none() ? 0 : number(object, argument);
}

py::object make_enumeration(py::module_ &module, char const *base, char const *name, py::dict const &members,
                            char const *documentation) {
    py::object made = py::module_::import("enum").attr(base)(name, members, py::arg("module") = "uform");
    made.attr("__doc__") = documentation;
    module.attr(name) = made;
    return made;
}

void bind_enumerations(py::module_ &module) {
    struct {
        enumeration_t &enumeration;
        char const *documentation;
        char const *base = "IntEnum";
    } const all[] = {
        {status_enumeration, "What a call came to: SUCCESS, DEFERRED, or why it failed."},
        {scalar_enumeration, "Scalars of outputs and of weights."},
        {mood_enumeration, "What an executor's threads do between calls: GRINDING spins for the shortest latency, "
                           "CHILLING spins for some\nmicroseconds and then sleeps, PARKED sleeps at once."},
        {cpu_class_enumeration, "Instruction sets that kernels are written for. SERIAL is plain C++, the reference."},
        {gpu_class_enumeration, "Generations of graphics processors that device code distinguishes."},
        {modality_enumeration, "What an item is; a set of them is their sum.", "IntFlag"},
    };
    for (auto const &[enumeration, documentation, base] : all) {
        enumeration.python_class =
            make_enumeration(module, base, enumeration.name, members_of(enumeration), documentation).release();
        py::dict members;
        for (py::handle member : enumeration.python_class) members[py::int_(member.cast<int>())] = member;
        enumeration.members = members.release();
    }
}

size_t size_argument(py::handle object, char const *argument, size_t item) {
    if (!PyIndex_Check(object.ptr())) raise_type(item, "%s: an integer is needed, not %s", argument, type_name(object));
    auto index = py::reinterpret_steal<py::object>(PyNumber_Index(object.ptr()));
    if (!index) throw py::error_already_set();
    size_t const number = PyLong_AsSize_t(index.ptr());
    if (number == static_cast<size_t>(-1) && PyErr_Occurred()) {
        PyErr_Clear();
        raise(uform_invalid_argument_k, item, "%s: %.40s is negative or too large", argument,
              py::str(index).cast<std::string>().c_str());
    }
    return number;
}

} // namespace uform::python
