/** Holding the interpreter's lock, and going without it. */
#pragma once
#include <Python.h>
#include <unistd.h>

namespace uform::python {

/** Whether the interpreter is being torn down. */
inline bool is_finalizing() noexcept {
#if PY_VERSION_HEX >= 0x030D0000
    return Py_IsFinalizing();
#else
    return _Py_IsFinalizing();
#endif
}

/** Whether this thread is the one that ends the interpreter; false before it began to. */
bool is_exiting_thread() noexcept;

/** Has threads of others keep out of an interpreter that is about to end. */
void watch_exit();

/**
 *  Admission for a thread that comes to Python by itself, from inside of the library or of another one: refused once
 *  the interpreter begins to end, which waits for those inside. The thread that ends it is let in while it can be.
 */
class visit_t {
  public:
    visit_t() noexcept;
    visit_t(visit_t const &) = delete;
    visit_t &operator=(visit_t const &) = delete;
    ~visit_t();
    explicit operator bool() const noexcept { return admitted_; }
    /** Whether the interpreter waits for this thread before it ends. */
    bool is_awaited() const noexcept { return counted_; }

  private:
    bool admitted_;
    bool counted_;
};

/** Lets other threads have the interpreter for as long as it lives. */
class without_gil_t {
  public:
    without_gil_t() noexcept : state_(PyEval_SaveThread()) {}
    without_gil_t(without_gil_t const &) = delete;
    without_gil_t &operator=(without_gil_t const &) = delete;
    ~without_gil_t() {
        // An interpreter at its end stops threads that come back to it by unwinding them, which frames of C++ do not
        // survive: they stay away from one that may be there soon.
        visit_t const visit;
        if (!visit.is_awaited() && !is_exiting_thread()) {
            for (int look = 0; look != 50 && !is_finalizing(); ++look) usleep(1000);
            while (is_finalizing()) pause();
        }
        PyEval_RestoreThread(state_);
    }

  private:
    PyThreadState *state_;
};

/** Takes the interpreter's lock on any thread. */
class with_gil_t {
  public:
    with_gil_t() noexcept : state_(PyGILState_Ensure()) {}
    with_gil_t(with_gil_t const &) = delete;
    with_gil_t &operator=(with_gil_t const &) = delete;
    ~with_gil_t() { PyGILState_Release(state_); }

  private:
    PyGILState_STATE state_;
};

} // namespace uform::python
