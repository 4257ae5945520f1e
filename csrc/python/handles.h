/** Handles of the C library with shared owners: what Python's objects, and calls that are on their way, hold. */
#pragma once
#include <memory>
#include <pybind11/pybind11.h>

#include "uform/model.h"

#include "failure.h"
#include "gil.h"
#include "progress.h"

namespace uform::python {

using executor_handle_t = std::shared_ptr<uform_executor_t>;
using arena_handle_t = std::shared_ptr<uform_arena_t>;
using model_handle_t = std::shared_ptr<uform_model_t>;

/** Shares a handle that was just made. The last owner, who has the GIL, frees it without. */
template <typename handle_type_>
std::shared_ptr<handle_type_> share(handle_type_ *handle, void (*release)(handle_type_ *)) {
    return {handle, [release](handle_type_ *freed) {
                without_gil_t without_gil;
                release(freed);
            }};
}

/** Runs a function of the library without the GIL; raises what it fails with. */
template <typename callable_type_> void check(callable_type_ &&callable) {
    uform_failure_t failure;
    uform_status_t status;
    {
        without_gil_t without_gil;
        status = callable();
        if (status < 0) uform_last_failure(&failure);
    }
    if (status < 0) raise(failure);
}

/** Python's `Executor`. */
struct executor_t {
    executor_handle_t handle; /**< Empty once it is closed. */

    /** INVALID_ARGUMENT where it is closed. */
    executor_handle_t const &open() const;
};

/** Python's `Arena`. */
struct arena_t {
    arena_handle_t handle;
};

/** Casts an argument; `ArgumentTypeError` for another type. */
template <typename class_type_> class_type_ &argument(py::handle object, char const *name, char const *class_name) {
    if (!py::isinstance<class_type_>(object))
        raise_type(UFORM_NO_ITEM, "%s: a uform.%s is needed, not %s", name, class_name, type_name(object));
    return object.cast<class_type_ &>();
}

/** Keeps the outputs of an arena where they are for as long as it lives. Made with the GIL, destroyed anywhere. */
class pin_t {
  public:
    /** INVALID_ARGUMENT where the arena was rewound since that generation, CONTENDED where a call is rewriting it. */
    pin_t(arena_handle_t const &arena, uint64_t generation) : arena_(arena.get()) {
        if (uform_arena_pin(arena_, generation) == uform_success_k) return;
        uform_failure_t failure;
        uform_last_failure(&failure);
        raise(failure);
    }
    pin_t(pin_t const &) = delete;
    pin_t &operator=(pin_t const &) = delete;
    ~pin_t() { uform_arena_unpin(arena_); }

  private:
    uform_arena_t *arena_; /**< No handle: the library keeps what is pinned. */
};

/** The handle of an executor that may be None. */
inline executor_handle_t executor_argument(py::handle object) {
    if (object.is_none()) return nullptr;
    return argument<executor_t>(object, "executor", "Executor").open();
}

} // namespace uform::python
