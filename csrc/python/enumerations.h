/** The C enumerations as classes of Python, and their members as arguments. */
#pragma once
#include <pybind11/pybind11.h>

#include "uform/types.h"

namespace uform::python {

namespace py = pybind11;

/** What `enumeration_t` has instances for: a class of Python, and the C function that names its members. */
struct enumeration_t {
    char const *name;
    char const *what; /**< In messages. */
    char const *(*name_of)(int);
    py::handle python_class; /**< Set by `bind_enumerations`, as the rest is. */
    py::handle members;      /**< A dict of them by number. */

    /** The member of a number that C gave; None for a zero that stands for none. */
    py::object member(int number) const;
    /** The number of a member, or of an integer equal to one. UNKNOWN_KIND where it is none. */
    int number(py::handle object, char const *argument) const;
    /** The same, and zero for None. */
    int number_or_default(py::handle object, char const *argument) const;
};

extern enumeration_t status_enumeration, scalar_enumeration, mood_enumeration, cpu_class_enumeration,
    gpu_class_enumeration, modality_enumeration;

/** Adds the classes to the module. */
void bind_enumerations(py::module_ &module);

/** `enum.<base>(name, members)` in the module, with a docstring. */
py::object make_enumeration(py::module_ &module, char const *base, char const *name, py::dict const &members,
                            char const *documentation);

/** A number that an argument gives; INVALID_ARGUMENT where it is negative. */
size_t size_argument(py::handle object, char const *argument, size_t item = UFORM_NO_ITEM);

} // namespace uform::python
