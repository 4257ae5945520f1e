#include "call.h"

#include "blocks.h"
#include "enumerations.h"

namespace uform::python {
namespace {

py::object traceback_of(py::object const &exception) {
    return py::reinterpret_steal<py::object>(PyException_GetTraceback(exception.ptr()));
}

/** Python's `Deferred`. */
class deferred_t {
  public:
    /** Submits the call. What the library refuses at once is kept, to be raised as what it refuses later is. */
    deferred_t(std::unique_ptr<call_t> call, py::object executor)
        : executor_(std::move(executor)), call_(std::move(call)) {
        executor_handle_t const handle = executor_argument(executor_);
        call_->progress.begin_deferred(handle.get());
        without_gil_t without_gil;
        uform_status_t const status = call_->submit(handle.get(), &outcome_);
        if (status != uform_deferred_k) uform_last_failure(&failure_);
    }
    deferred_t(deferred_t const &) = delete;
    deferred_t &operator=(deferred_t const &) = delete;
    ~deferred_t() { drop(); }

    int status() {
        if (!settled_ && is_final()) settle();
        return settled_ ? failure_.status : uform_deferred_k;
    }

    py::object wait() {
        if (!settled_) {
            if (call_->progress.is_reporting_here())
                raise(uform_contended_k, UFORM_NO_ITEM, "wait: the call waits for the handler that waits for it");
            await_outcome();
            settle();
        }
        if (exception_) {
            observed_ = true;
            raise_again(exception_, traceback_);
        }
        if (failure_.status < 0) raise(failure_);
        return result_;
    }

    int traverse(visitproc visit, void *arg) const noexcept {
        Py_VISIT(executor_.ptr());
        Py_VISIT(result_.ptr());
        Py_VISIT(exception_.ptr());
        Py_VISIT(traceback_.ptr());
        if (call_) Py_VISIT(call_->progress.handler().ptr());
        return 0;
    }

    /** Breaks cycles of references through the call, which is waited for. */
    void clear() noexcept {
        await_outcome();
        settle(false);
        result_ = exception_ = traceback_ = py::object();
    }

  private:
    bool is_final() const noexcept { return !outcome_ || uform_outcome_status(outcome_) != uform_deferred_k; }

    void await_outcome() const noexcept {
        if (!outcome_) return;
        without_gil_t without_gil;
        uform_outcome_wait(outcome_);
    }

    /** Takes over what the call came to, and lets go of what it read. `wanted`: what the verb answers, as well. */
    void settle(bool wanted = true) noexcept {
        if (settled_) return;
        settled_ = true;
        if (outcome_) uform_outcome_failure(outcome_, &failure_);
        exception_ = call_->progress.exception();
        traceback_ = call_->progress.traceback();
        try {
            if (!exception_ && failure_.status < 0 && (exception_ = call_->allocation_exception(failure_)))
                traceback_ = traceback_of(exception_);
            if (!exception_ && failure_.status == uform_success_k) {
                call_->publish_stats();
                if (wanted) result_ = call_->result();
            }
        }
        catch (py::error_already_set &error) {
            exception_ = error.value();
            traceback_ = error.trace();
        }
        // Letting go can run code of Python's, which may come back here.
        std::unique_ptr<call_t> const call = std::move(call_);
        py::object const executor = std::move(executor_);
    }

    void drop() noexcept {
        if (!settled_ && call_->progress.is_reporting_here()) {
            // A handler dropped its own call, and would wait for itself: the main thread waits instead.
            auto *abandoned = new deferred_t(std::move(*this));
            auto const free = [](void *deferred) {
                delete static_cast<deferred_t *>(deferred);
                return 0;
            };
            // Without room in the interpreter's queue it is never freed, which is safe.
            Py_AddPendingCall(free, abandoned);
            return;
        }
        await_outcome();
        if (call_) settle(false);
        if (exception_ && !observed_) report_exception();
        uform_outcome_free(outcome_);
    }

    /** Nobody will ever see what the handler raised. */
    void report_exception() const noexcept {
        PyException_SetTraceback(exception_.ptr(), traceback_ ? traceback_.ptr() : Py_None);
        PyErr_SetObject(reinterpret_cast<PyObject *>(Py_TYPE(exception_.ptr())), exception_.ptr());
        PyErr_WriteUnraisable(nullptr);
    }

    /** For `drop`. */
    deferred_t(deferred_t &&other) noexcept
        : executor_(std::move(other.executor_)), call_(std::move(other.call_)),
          outcome_(std::exchange(other.outcome_, nullptr)), failure_(other.failure_) {
        other.settled_ = true;
    }

    py::object executor_;
    std::unique_ptr<call_t> call_; /**< Until it is settled. */
    uform_outcome_t *outcome_ = nullptr;
    uform_failure_t failure_ {uform_success_k, UFORM_NO_ITEM, {}};
    py::object result_, exception_, traceback_;
    bool settled_ = false;
    bool observed_ = false; /**< The exception was raised to someone. */
};

/** Lets the collector of cycles look through a call, as a handler often refers to what holds the call. */
void collect_cycles(PyHeapTypeObject *heap_type) {
    PyTypeObject *type = &heap_type->ht_type;
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = [](PyObject *self, visitproc visit, void *arg) -> int {
        Py_VISIT(Py_TYPE(self));
        if (!py::detail::is_holder_constructed(self)) return 0;
        return py::handle(self).cast<deferred_t &>().traverse(visit, arg);
    };
    type->tp_clear = [](PyObject *self) -> int {
        if (py::detail::is_holder_constructed(self)) py::handle(self).cast<deferred_t &>().clear();
        return 0;
    };
}

/** Hands `wait` to the default executor of the loop that runs. */
py::object await_in_loop(py::object const &self) {
    py::object const loop = py::module_::import("asyncio").attr("get_running_loop")();
    // A future refuses StopIteration, and whoever awaits it would never hear: generators turn it into this as well.
    py::cpp_function const wait([self] {
        try {
            return self.cast<deferred_t &>().wait();
        }
        catch (py::error_already_set &error) {
            if (!error.matches(PyExc_StopIteration)) throw;
            py::raise_from(error, PyExc_RuntimeError, "the progress handler raised StopIteration");
            throw py::error_already_set();
        }
    });
    return loop.attr("run_in_executor")(py::none(), wait).attr("__await__")();
}

} // namespace

py::object call_t::allocation_exception(uform_failure_t const &failure) const {
    blocks_t *const blocks = blocks_of(arena_);
    return blocks ? blocks->take_exception(failure) : py::object();
}

py::object receiver_t::run(std::unique_ptr<call_t> call) const {
    if (deferred) return py::cast(std::make_unique<deferred_t>(std::move(call), executor));
    executor_handle_t const handle = executor_argument(executor);
    call->progress.begin_blocking(handle.get());
    uform_failure_t failure {uform_success_k, UFORM_NO_ITEM, {}};
    {
        without_gil_t without_gil;
        if (call->submit(handle.get(), nullptr) != uform_success_k) uform_last_failure(&failure);
    }
    if (call->progress.exception()) call->progress.raise_exception();
    if (failure.status != uform_success_k) {
        if (py::object const exception = call->allocation_exception(failure))
            raise_again(exception, traceback_of(exception));
        raise(failure);
    }
    call->publish_stats();
    return call->result();
}

void bind_deferred(py::module_ &module) {
    auto deferred = py::class_<deferred_t>(
        module, "Deferred", py::is_final(), py::custom_type_setup(collect_cycles),
        "A call that runs on its executor's threads, made by a verb of `model.deferred(executor)`.\n\n"
        "`await` it in a coroutine, as often as needed, or `wait()` for it anywhere else. What it reads is kept alive\n"
        "until it is final. Dropping it waits for it first; an exception of its handler that nobody waited for is\n"
        "then reported through `sys.unraisablehook`.");
    deferred
        .def_property_readonly(
            "status", [](deferred_t &self) { return status_enumeration.member(self.status()); },
            "Status.DEFERRED while the call runs, then its final status. Never waits.")
        .def("wait", &deferred_t::wait,
             "wait(self, /)\n--\n\n"
             "Waits for the call and returns what its verb answers, the same object every time.\n\n"
             "Raises what the call failed with, or the exception of its progress handler.")
        .def("__await__", await_in_loop)
        .def("__repr__",
             [](deferred_t &self) { return py::str("<uform.Deferred {}>").format(uform_status_name(self.status())); });
    deferred.attr("__class_getitem__") =
        py::reinterpret_steal<py::object>(PyClassMethod_New(reinterpret_cast<PyObject *>(&Py_GenericAliasType)));
}

} // namespace uform::python
