#include "progress.h"

#include <cstring>

#include "failure.h"
#include "gil.h"

namespace uform::python {
namespace {

constinit thread_local callback_t const *innermost_callback = nullptr;

/** False, of Python or of NumPy. */
bool is_false(py::handle result) noexcept {
    if (result.ptr() == Py_False) return true;
    return std::strncmp(type_name(result), "numpy.bool", 10) == 0 && PyObject_IsTrue(result.ptr()) == 0;
}

} // namespace

callback_t::callback_t(progress_t const *progress, uform_executor_t const *executor) noexcept
    : progress(progress), executor(executor), outer(innermost_callback) {
    innermost_callback = this;
}

callback_t::~callback_t() { innermost_callback = outer; }

progress_t::progress_t(py::object handler) {
    if (handler.is_none()) return;
    if (!PyCallable_Check(handler.ptr()))
        raise_type(UFORM_NO_ITEM, "progress: a callable is needed, not %s", type_name(handler));
    handler_ = std::move(handler);
}

void progress_t::begin_blocking(uform_executor_t const *executor) noexcept {
    executor_ = executor;
    interruptible_ = true;
    thread_ = std::this_thread::get_id();
    checked_ = std::chrono::steady_clock::now();
}

void progress_t::raise_exception() const { raise_again(exception_, traceback_); }

bool progress_t::is_reporting_here() const noexcept {
    for (callback_t const *callback = innermost_callback; callback; callback = callback->outer)
        if (callback->progress == this || !callback->progress) return true;
    return false;
}

bool progress_t::is_held_here(uform_executor_t const *executor) noexcept {
    for (callback_t const *callback = innermost_callback; callback; callback = callback->outer)
        if (callback->executor == executor || !callback->progress) return true;
    return false;
}

bool progress_t::report(void *context, size_t completed, size_t total) noexcept {
    auto &progress = *static_cast<progress_t *>(context);
    return progress.handler_ ? progress.call_handler(completed, total) : progress.check_signals();
}

bool progress_t::call_handler(size_t completed, size_t total) noexcept {
    visit_t const visit;
    if (!visit) return false;
    with_gil_t const with_gil;
    py::object result;
    {
        callback_t const callback(this, executor_);
        result = py::reinterpret_steal<py::object>(PyObject_CallFunction(handler_.ptr(), "nn", completed, total));
    }
    if (!result) keep_exception();
    return result && !is_false(result);
}

bool progress_t::check_signals() noexcept {
    constexpr auto period_k = std::chrono::milliseconds(50);
    if (std::this_thread::get_id() != thread_) return true;
    auto const now = std::chrono::steady_clock::now();
    if (now - checked_ < period_k) return true;
    checked_ = now;
    visit_t const visit;
    if (!visit) return false;
    with_gil_t const with_gil;
    if (PyErr_CheckSignals() == 0) return true;
    keep_exception();
    return false;
}

void progress_t::keep_exception() noexcept {
    PyObject *type = nullptr, *value = nullptr, *traceback = nullptr;
    PyErr_Fetch(&type, &value, &traceback);
    PyErr_NormalizeException(&type, &value, &traceback);
    Py_XDECREF(type);
    exception_ = py::reinterpret_steal<py::object>(value);
    traceback_ = py::reinterpret_steal<py::object>(traceback);
}

} // namespace uform::python
