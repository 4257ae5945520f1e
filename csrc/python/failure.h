/** Failures as exceptions of Python. */
#pragma once
#include <pybind11/pybind11.h>

#include "uform/types.h"

namespace uform::python {

namespace py = pybind11;

/** Raises the class of `uform.errors` that stands for the failure's status. */
[[noreturn]] void raise(uform_failure_t const &failure);

/** The same for what the library would have refused. `format` is printf's. */
[[noreturn, gnu::format(printf, 3, 4)]] void raise(uform_status_t status, size_t item, char const *format, ...);

/** The same, with another exception as its cause. */
[[noreturn, gnu::format(printf, 4, 5)]] void raise_from(py::error_already_set const &cause, uform_status_t status,
                                                        size_t item, char const *format, ...);

/** The exception that `raise` raises for a failure, with another one as its cause. */
py::object exception_of(uform_failure_t const &failure, py::handle cause);

/** Whether an exception is one of the package's own. */
bool is_failure(py::handle exception);

/** Raises `uform.ArgumentTypeError`: an object of a type that the argument never takes. */
[[noreturn, gnu::format(printf, 2, 3)]] void raise_type(size_t item, char const *format, ...);

/** Raises an exception that was caught before, as it was caught. */
[[noreturn]] void raise_again(py::object const &exception, py::object const &traceback);

/** Of an object, for messages. */
inline char const *type_name(py::handle object) noexcept { return Py_TYPE(object.ptr())->tp_name; }

} // namespace uform::python
