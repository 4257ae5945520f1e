#include "gil.h"

#include <atomic>
#include <cstddef>
#include <pthread.h>
#include <pybind11/pybind11.h>

namespace uform::python {
namespace {

/** Threads that are about to take the GIL for a visit, or that have it. */
constinit std::atomic<size_t> visitors {0};
constinit thread_local size_t visits_of_this_thread = 0;
/** Set when the interpreter begins to end: no other thread may take the GIL for a visit from then on. */
constinit std::atomic<bool> exiting {false};
constinit std::atomic<unsigned long> exiting_thread {0}; /**< Zero before it ends. */

void leave() noexcept {
    if (visitors.fetch_sub(1) == 1) visitors.notify_all();
}

/** The child of a fork has this thread alone. */
void count_again() noexcept { visitors.store(visits_of_this_thread); }

void end_visits() {
    exiting_thread.store(PyThread_get_thread_ident());
    exiting.store(true);
    without_gil_t without_gil;
    while (size_t const inside = visitors.load()) visitors.wait(inside);
}

} // namespace

bool is_exiting_thread() noexcept { return exiting_thread.load() == PyThread_get_thread_ident(); }

void watch_exit() {
    pthread_atfork(nullptr, nullptr, count_again);
    pybind11::module_::import("atexit").attr("register")(pybind11::cpp_function(end_visits));
}

visit_t::visit_t() noexcept {
    // Counted before the look, so that whoever ends the interpreter either is seen here or sees this.
    visitors.fetch_add(1);
    // A visit inside of another one ends before it.
    counted_ = visits_of_this_thread || !exiting.load();
    if (counted_) ++visits_of_this_thread;
    else leave();
    admitted_ = counted_ || (is_exiting_thread() && Py_IsInitialized());
}

visit_t::~visit_t() {
    if (!counted_) return;
    --visits_of_this_thread;
    leave();
}

} // namespace uform::python
