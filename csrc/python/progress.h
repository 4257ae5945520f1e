/** Progress handlers of Python: called on the threads that run a call, with the GIL. */
#pragma once
#include <chrono>
#include <pybind11/pybind11.h>
#include <thread>

#include "uform/types.h"

namespace uform::python {

namespace py = pybind11;

/**
 *  What a call reports its progress to. It stays where it is while the call runs.
 *
 *  A handler that returns False stops the call, and one that raises as well: its exception is kept for the caller.
 *  A blocking call without a handler looks for signals now and then, so that Ctrl-C stops it.
 */
class progress_t {
  public:
    /** @param handler A callable, or None. */
    explicit progress_t(py::object handler);
    progress_t(progress_t const &) = delete;
    progress_t &operator=(progress_t const &) = delete;

    /** The call is about to block this thread, on an executor or none. */
    void begin_blocking(uform_executor_t const *executor) noexcept;
    /** The call is about to be deferred. */
    void begin_deferred(uform_executor_t const *executor) noexcept { executor_ = executor; }

    /** For the C argument structures. */
    uform_progress_t function() const noexcept { return handler_ || interruptible_ ? report : nullptr; }
    void *context() noexcept { return this; }

    /** What stopped the call, if something was raised. */
    py::object const &exception() const noexcept { return exception_; }
    py::object const &traceback() const noexcept { return traceback_; }
    /** Raises it. */
    void raise_exception() const;

    py::object const &handler() const noexcept { return handler_; }

    /** Whether this thread is inside of the call's handler, or of any `allocate`, and would wait for itself. */
    bool is_reporting_here() const noexcept;
    /** Whether this thread is inside of a handler of a call that holds the executor, or of any `allocate`. */
    static bool is_held_here(uform_executor_t const *executor) noexcept;

  private:
    static bool report(void *context, size_t completed, size_t total) noexcept;
    bool call_handler(size_t completed, size_t total) noexcept;
    bool check_signals() noexcept;
    /** Keeps what was just raised. */
    void keep_exception() noexcept;

    py::object handler_; /**< Empty without one. */
    py::object exception_, traceback_;
    uform_executor_t const *executor_ = nullptr;
    bool interruptible_ = false;
    std::thread::id thread_;
    std::chrono::steady_clock::time_point checked_;
};

/** Code of Python's that this thread runs for a call, which waits for it: it may not wait for the call in turn. */
struct callback_t {
    progress_t const *const progress; /**< nullptr: an arena's `allocate`, which knows nothing of its call. */
    uform_executor_t const *const executor;
    callback_t const *const outer;

    callback_t(progress_t const *progress, uform_executor_t const *executor) noexcept;
    callback_t(callback_t const &) = delete;
    callback_t &operator=(callback_t const &) = delete;
    ~callback_t();
};

} // namespace uform::python
