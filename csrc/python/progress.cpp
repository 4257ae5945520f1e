#include "progress.h"

#include <atomic>
#include <cstring>
#include <pthread.h>

#include "failure.h"
#include "gil.h"

namespace uform::python {
namespace {

/** Handlers that this thread is inside of, from the innermost on. */
struct frame_t {
    progress_t const *progress;
    uform_executor_t const *executor;
    frame_t const *outer;
};
constinit thread_local frame_t const *innermost_frame = nullptr;

/** Threads that are about to take the GIL for a handler, or that have it. */
constinit std::atomic<size_t> reporting_threads {0};
/** Set when the interpreter begins to end: no thread may take the GIL for a handler from then on. */
constinit std::atomic<bool> exiting {false};
constinit std::atomic<unsigned long> exiting_thread {0}; /**< Zero before it ends. */

/** One of the reporting threads, unless the interpreter is about to end. */
class reporting_t {
  public:
    reporting_t() noexcept {
        // Counted before the look, so that whoever ends the interpreter either is seen here or sees this.
        reporting_threads.fetch_add(1);
        admitted_ = !exiting.load();
        if (!admitted_) leave();
    }
    reporting_t(reporting_t const &) = delete;
    reporting_t &operator=(reporting_t const &) = delete;
    ~reporting_t() {
        if (admitted_) leave();
    }
    explicit operator bool() const noexcept { return admitted_; }

  private:
    static void leave() noexcept {
        if (reporting_threads.fetch_sub(1) == 1) reporting_threads.notify_all();
    }
    bool admitted_;
};

/** The child of a fork has this thread alone. */
void count_again() noexcept {
    size_t frames = 0;
    for (frame_t const *frame = innermost_frame; frame; frame = frame->outer) ++frames;
    reporting_threads.store(frames);
}

void end_reports() {
    exiting_thread.store(PyThread_get_thread_ident());
    exiting.store(true);
    without_gil_t without_gil;
    while (size_t const threads = reporting_threads.load()) reporting_threads.wait(threads);
}

/** False, of Python or of NumPy. */
bool is_false(py::handle result) noexcept {
    if (result.ptr() == Py_False) return true;
    return std::strncmp(type_name(result), "numpy.bool", 10) == 0 && PyObject_IsTrue(result.ptr()) == 0;
}

} // namespace

bool is_exiting_thread() noexcept { return exiting_thread.load() == PyThread_get_thread_ident(); }

void watch_exit() {
    pthread_atfork(nullptr, nullptr, count_again);
    py::module_::import("atexit").attr("register")(py::cpp_function(end_reports));
}

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
    for (frame_t const *frame = innermost_frame; frame; frame = frame->outer)
        if (frame->progress == this) return true;
    return false;
}

bool progress_t::is_held_here(uform_executor_t const *executor) noexcept {
    for (frame_t const *frame = innermost_frame; frame; frame = frame->outer)
        if (frame->executor == executor) return true;
    return false;
}

bool progress_t::report(void *context, size_t completed, size_t total) noexcept {
    auto &progress = *static_cast<progress_t *>(context);
    return progress.handler_ ? progress.call_handler(completed, total) : progress.check_signals();
}

bool progress_t::call_handler(size_t completed, size_t total) noexcept {
    reporting_t const reporting;
    if (!reporting) return false;
    with_gil_t const with_gil;
    frame_t const frame {this, executor_, innermost_frame};
    innermost_frame = &frame;
    auto const result =
        py::reinterpret_steal<py::object>(PyObject_CallFunction(handler_.ptr(), "nn", completed, total));
    innermost_frame = frame.outer;
    if (!result) keep_exception();
    return result && !is_false(result);
}

bool progress_t::check_signals() noexcept {
    constexpr auto period_k = std::chrono::milliseconds(50);
    if (std::this_thread::get_id() != thread_) return true;
    auto const now = std::chrono::steady_clock::now();
    if (now - checked_ < period_k) return true;
    checked_ = now;
    reporting_t const reporting;
    if (!reporting) return false;
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
