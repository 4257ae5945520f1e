/** `Model` and its loads: what `uform/model.h` has. */
#include "buffers.h"
#include "call.h"
#include "enumerations.h"

namespace uform::python {
namespace {

/** The arguments that all loads to host memory share, in C's form. */
class load_options_t {
  public:
    load_options_t(py::object const &quantization, py::object const &executor, py::object const &progress,
                   py::object const &cpu_class)
        : progress_(progress), executor_(executor_argument(executor)) {
        options_.executor = executor_.get();
        options_.quantization = static_cast<uform_scalar_t>(scalar_enumeration.number(quantization, "quantization"));
        options_.cpu_class =
            static_cast<uform_cpu_class_t>(cpu_class_enumeration.number_or_default(cpu_class, "cpu_class"));
    }

    /** Calls `load(options, model)` without the GIL. */
    template <typename callable_type_> model_t run(callable_type_ &&load) {
        progress_.begin_blocking(executor_.get());
        options_.progress = progress_.function();
        options_.progress_context = progress_.context();
        uform_model_t *handle = nullptr;
        uform_failure_t failure {uform_success_k, UFORM_NO_ITEM, {}};
        {
            without_gil_t without_gil;
            if (load(&options_, &handle) != uform_success_k) uform_last_failure(&failure);
        }
        if (progress_.exception()) {
            uform_model_free(handle);
            progress_.raise_exception();
        }
        if (failure.status != uform_success_k) raise(failure);
        return {{share(handle, uform_model_free)}};
    }

  private:
    progress_t progress_;
    executor_handle_t executor_;
    uform_model_load_ram_t options_ {};
};

/** As `os.fsencode` has it. */
py::bytes path_argument(py::handle object) {
    PyObject *encoded = nullptr;
    if (PyUnicode_FSConverter(object.ptr(), &encoded)) return py::reinterpret_steal<py::bytes>(encoded);
    py::error_already_set const error;
    if (error.matches(PyExc_TypeError))
        raise_type(UFORM_NO_ITEM, "path: a str, bytes or os.PathLike is needed, not %s", type_name(object));
    if (!error.matches(PyExc_ValueError)) throw error;
    raise_from(error, uform_invalid_argument_k, UFORM_NO_ITEM, "path: %.200s",
               py::str(error.value()).cast<std::string>().c_str());
}

/** What tells later whether the file is still the one that is loaded; none where the load is going to fail. */
py::object file_of(py::bytes const &path) {
    py::module_ const os = py::module_::import("os");
    try {
        return py::make_tuple(os.attr("fsdecode")(os.attr("path").attr("abspath")(path)), os.attr("stat")(path));
    }
    catch (py::error_already_set const &error) {
        if (!error.matches(PyExc_OSError) && !error.matches(PyExc_ValueError)) throw;
        return py::none();
    }
}

model_t load_ram(py::object const &path, py::object const &quantization, py::object const &executor,
                 py::object const &progress, py::object const &cpu_class) {
    py::bytes const encoded = path_argument(path);
    load_options_t options(quantization, executor, progress, cpu_class);
    py::object const file = file_of(encoded);
    model_t model = options.run([&](uform_model_load_ram_t const *arguments, uform_model_t **handle) {
        return uform_model_load_ram(PyBytes_AS_STRING(encoded.ptr()), arguments, handle);
    });
    model.file = file;
    return model;
}

buffer_t checkpoint_argument(py::handle object) {
    if (!PyObject_CheckBuffer(object.ptr()))
        raise_type(UFORM_NO_ITEM, "data: a bytes-like object is needed, not %s", type_name(object));
    buffer_t buffer = buffer_t::of(object, "data");
    if (!buffer.is_contiguous()) raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "data: it has to be C-contiguous");
    return buffer;
}

model_t load_ram_buffer(py::object const &data, py::object const &quantization, py::object const &executor,
                        py::object const &progress, py::object const &cpu_class) {
    buffer_t const buffer = checkpoint_argument(data);
    load_options_t options(quantization, executor, progress, cpu_class);
    return options.run([&](uform_model_load_ram_t const *arguments, uform_model_t **model) {
        // An empty export may have no address.
        return uform_model_load_ram_buffer(buffer.data() ? buffer.data() : "", buffer.length(), arguments, model);
    });
}

/** This build drives no device: refuses as making an executor on them does. */
[[noreturn]] void refuse_devices(py::object const &devices, py::object const &gpu_class) {
    py::type::of<executor_t>().attr("for_vram")(devices, py::arg("gpu_class") = gpu_class);
    raise(uform_unsupported_k, UFORM_NO_ITEM, "devices: this build of UForm loads models to host memory alone");
}

py::object describe(model_t const &self) {
    uform_model_description_t description;
    uform_model_describe(self.model.get(), &description);
    return py::module_::import("uform.model")
        .attr("ModelDescription")(
            py::arg("dimensions") = description.dimensions, py::arg("context") = description.context,
            py::arg("quantization") = scalar_enumeration.member(description.quantization),
            py::arg("memory_usage") = description.memory_usage,
            py::arg("cpu_class") = cpu_class_enumeration.member(description.cpu_class),
            py::arg("gpu_class") = gpu_class_enumeration.member(description.gpu_class),
            py::arg("token_width") = description.token_width,
            py::arg("choice_temperature_groups") = description.choice_temperature_groups,
            py::arg("cpu_class_pinned") = description.cpu_class_pinned, py::arg("depth") = description.depth,
            py::arg("hidden") = description.hidden, py::arg("head_dimension") = description.head_dimension,
            py::arg("parameters") = description.parameters,
            py::arg("modalities") = modality_enumeration.python_class(description.modalities),
            py::arg("trained_modalities") = modality_enumeration.python_class(description.trained_modalities));
}

py::str represent(model_t const &self) {
    uform_model_description_t description;
    uform_model_describe(self.model.get(), &description);
    return py::str("<uform.Model parameters={} dimensions={} context={} quantization={}>")
        .format(description.parameters, description.dimensions, description.context,
                uform_scalar_name(description.quantization));
}

template <typename receiver_type_>
receiver_type_ receive(model_t const &self, py::object const &executor, bool deferred) {
    argument<executor_t>(executor, "executor", "Executor").open();
    return {{self.model, executor, deferred}};
}

} // namespace

receivers_t::receivers_t(py::module_ &module)
    : model(module, "Model", py::is_final(),
            "A checkpoint in memory: immutable, shared by any number of threads, executors and calls.\n\n"
            "Its verbs run on the calling thread; `on(executor)` and `deferred(executor)` have the same ones."),
      on(module, "On", py::is_final(), "A model whose verbs block on an executor; see `Model.on`."),
      deferred_on(module, "DeferredOn", py::is_final(),
                  "A model whose verbs are submitted to an executor, and answer a Deferred; see `Model.deferred`.") {}

void bind_model(receivers_t &receivers) {
    receivers.model
        .def_static("load_ram", load_ram, py::arg("path"), py::kw_only(),
                    py::arg("quantization") = scalar_enumeration.member(uform_bf16_k), py::arg("executor") = py::none(),
                    py::arg("progress") = py::none(), py::arg("cpu_class") = py::none(),
                    "load_ram(path, *, quantization=Scalar.BF16, executor=None, progress=None, cpu_class=None)\n--\n\n"
                    "Loads a safetensors checkpoint of format 1 from a file into host memory.\n\n"
                    "path: str, bytes or os.PathLike, as `os.fsencode` takes it.\n"
                    "quantization: Scalar.BF16 as stored, or Scalar.E4M3: the blocks' matrices with a scale per row.\n"
                    "executor: threads that the load runs on; None: the calling thread.\n"
                    "progress: called with (completed, total) tensors; returning False, or raising, stops the load.\n"
                    "cpu_class: a CPUClass that its calls run as; None: the fastest that the machine has.\n\n"
                    "Raises InputOutputError (path), MalformedError (no safetensors, truncated, hostile),\n"
                    "UnsupportedError (format number, class), ConfigMismatchError (configuration),\n"
                    "ShapeMismatchError (a tensor that is missing or of a wrong shape, by name), UnknownKindError\n"
                    "(scalar), OutOfMemoryError, ContendedError (executor), CancelledError.")
        .def_static("load_ram_buffer", load_ram_buffer, py::arg("data"), py::kw_only(),
                    py::arg("quantization") = scalar_enumeration.member(uform_bf16_k), py::arg("executor") = py::none(),
                    py::arg("progress") = py::none(), py::arg("cpu_class") = py::none(),
                    "load_ram_buffer(data, *, quantization=Scalar.BF16, executor=None, progress=None, cpu_class=None)\n"
                    "--\n\n"
                    "Loads a checkpoint from a C-contiguous bytes-like object, which is not needed afterwards.\n"
                    "Otherwise as `load_ram`.")
        .def_static(
            "load_vram",
            [](py::object const &path, py::object const &devices, py::object const &, py::object const &,
               py::object const &, py::object const &gpu_class) -> model_t {
                path_argument(path);
                refuse_devices(devices, gpu_class);
            },
            py::arg("path"), py::arg("devices") = py::none(), py::kw_only(),
            py::arg("quantization") = scalar_enumeration.member(uform_bf16_k), py::arg("executor") = py::none(),
            py::arg("progress") = py::none(), py::arg("gpu_class") = py::none(),
            "load_vram(path, devices=None, *, quantization=Scalar.BF16, executor=None, progress=None, gpu_class=None)\n"
            "--\n\n"
            "Would load a checkpoint onto devices. This build drives none, and raises as `Executor.for_vram` does.")
        .def_static(
            "load_vram_buffer",
            [](py::object const &data, py::object const &devices, py::object const &, py::object const &,
               py::object const &, py::object const &gpu_class) -> model_t {
                checkpoint_argument(data);
                refuse_devices(devices, gpu_class);
            },
            py::arg("data"), py::arg("devices") = py::none(), py::kw_only(),
            py::arg("quantization") = scalar_enumeration.member(uform_bf16_k), py::arg("executor") = py::none(),
            py::arg("progress") = py::none(), py::arg("gpu_class") = py::none(),
            "load_vram_buffer(data, devices=None, *, quantization=Scalar.BF16, executor=None, progress=None, "
            "gpu_class=None)\n--\n\n"
            "`load_vram` of a bytes-like object.")
        .def_readonly("_file", &model_t::file)
        .def("describe", describe, "describe(self, /)\n--\n\nWhat the model is, as a ModelDescription.")
        .def(
            "on", [](model_t const &self, py::object const &executor) { return receive<on_t>(self, executor, false); },
            py::arg("executor"), "on(self, executor)\n--\n\nThe model with verbs that block on the executor.")
        .def(
            "deferred",
            [](model_t const &self, py::object const &executor) {
                return receive<deferred_on_t>(self, executor, true);
            },
            py::arg("executor"),
            "deferred(self, executor)\n--\n\n"
            "The model with verbs that are submitted to the executor, and answer a Deferred.")
        .def("__repr__", represent);
}

} // namespace uform::python
