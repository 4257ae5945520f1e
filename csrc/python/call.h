/** Calls of verbs, blocking and deferred: what they read and write, kept until they are final. */
#pragma once
#include <memory>
#include <pybind11/pybind11.h>

#include "uform/types.h"

#include "handles.h"
#include "progress.h"

namespace uform::python {

/** A verb's call. Made, finished and destroyed with the GIL; submitted without. */
class call_t {
  public:
    call_t(model_handle_t model, arena_handle_t arena, py::object progress)
        : progress(std::move(progress)), model_(std::move(model)), arena_(std::move(arena)) {}
    call_t(call_t const &) = delete;
    call_t &operator=(call_t const &) = delete;
    virtual ~call_t() = default;

    /** Calls the C function. */
    virtual uform_status_t submit(uform_executor_t *executor, uform_outcome_t **completion) noexcept = 0;
    /** Fills in the stats that were passed, once the call has succeeded. */
    virtual void publish_stats() noexcept = 0;
    /** What the verb answers, once the call has succeeded. */
    virtual py::object result() = 0;

    /** What the call raises instead of its failure, where its arena's `allocate` is why; empty where not. */
    py::object allocation_exception(uform_failure_t const &failure) const;

    progress_t progress;

  protected:
    /** Fills in what the argument structures of all verbs share. */
    template <typename arguments_type_>
    void fill_call(arguments_type_ &arguments, uform_executor_t *executor, uform_outcome_t **completion) noexcept {
        arguments.executor = executor;
        arguments.completion = completion;
        arguments.arena = arena_.get();
        arguments.progress = progress.function();
        arguments.progress_context = progress.context();
    }

    model_handle_t model_;
    arena_handle_t arena_;
};

/** Who runs a verb: what stands before a verb's inputs in C. `Model`, `On` and `DeferredOn` of Python differ in it. */
struct receiver_t {
    model_handle_t model;
    py::object executor = py::none(); /**< None: the calling thread. */
    bool deferred = false;

    /** Runs the call, or submits it: the verb's result, or a `Deferred`. */
    py::object run(std::unique_ptr<call_t> call) const;
};

struct model_t : receiver_t {
    /** (path, its `os.stat`) of the file that it was loaded from, or none. */
    py::object file = py::none();
};
struct on_t : receiver_t {};
struct deferred_on_t : receiver_t {};

/** Adds `Deferred`. */
void bind_deferred(py::module_ &module);

/** The classes that have verbs. */
struct receivers_t {
    py::class_<model_t> model;
    py::class_<on_t> on;
    py::class_<deferred_on_t> deferred_on;

    explicit receivers_t(py::module_ &module);
};

void bind_types(py::module_ &module);
void bind_model(receivers_t &receivers);
/** `default_outputs`: what verbs keep where nothing is asked for. */
void bind_encode(py::module_ &module, receivers_t &receivers, py::object const &default_outputs);
void bind_rank(py::module_ &module);
void bind_media(py::module_ &module, receivers_t &receivers, py::object const &default_outputs);

} // namespace uform::python
