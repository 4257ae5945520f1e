#include "failure.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

namespace uform::python {
namespace {

/** What messages are made of, cut where they are too long. */
struct message_t {
    char text[sizeof(uform_failure_t::message)];

    message_t(char const *format, va_list arguments) noexcept { std::vsnprintf(text, sizeof(text), format, arguments); }
};

/** An instance of the class for the status; SUCCESS stands for a wrong type. */
py::object make_error(int status, char const *message, size_t item) {
    // A path or a text that is cut may end in the middle of a character.
    auto text = py::reinterpret_steal<py::object>(
        PyUnicode_DecodeUTF8(message, static_cast<Py_ssize_t>(std::strlen(message)), "replace"));
    if (!text) throw py::error_already_set();
    py::object const where = item == UFORM_NO_ITEM ? py::object(py::none()) : py::object(py::int_(item));
    return py::module_::import("uform.errors").attr("error_of")(status, text, where);
}

[[noreturn]] void throw_error(py::object const &error) {
    PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(error.ptr())), error.ptr());
    throw py::error_already_set();
}

} // namespace

void raise(uform_failure_t const &failure) { throw_error(make_error(failure.status, failure.message, failure.item)); }

void raise(uform_status_t status, size_t item, char const *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    message_t const message(format, arguments);
    va_end(arguments);
    throw_error(make_error(status, message.text, item));
}

void raise_from(py::error_already_set const &cause, uform_status_t status, size_t item, char const *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    message_t const message(format, arguments);
    va_end(arguments);
    py::object const error = make_error(status, message.text, item);
    error.attr("__cause__") = cause.value();
    throw_error(error);
}

py::object exception_of(uform_failure_t const &failure, py::handle cause) {
    py::object error = make_error(failure.status, failure.message, failure.item);
    error.attr("__cause__") = cause;
    return error;
}

void raise_type(size_t item, char const *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    message_t const message(format, arguments);
    va_end(arguments);
    throw_error(make_error(uform_success_k, message.text, item));
}

void raise_again(py::object const &exception, py::object const &traceback) {
    PyException_SetTraceback(exception.ptr(), traceback ? traceback.ptr() : Py_None);
    throw_error(exception);
}

bool is_failure(py::handle exception) {
    return py::isinstance(exception, py::module_::import("uform.errors").attr("Error"));
}

} // namespace uform::python
