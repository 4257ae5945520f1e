/** `Executor`, `Arena` and their views: what `uform/types.h` has. */
#include "blocks.h"
#include "buffers.h"
#include "call.h"
#include "enumerations.h"
#include "views.h"

namespace uform::python {
namespace {

/** A list of numbers that an argument gives; None: none. */
struct numbers_t {
    std::vector<size_t> values;
    bool given;

    numbers_t(py::handle object, char const *name) : given(!object.is_none()) {
        if (!given) return;
        py::tuple const items = items_of(object, name, "a sequence of integers");
        values.reserve(items.size() + 1); // A list that is empty has an address, too.
        for (size_t item = 0; item != items.size(); ++item)
            values.push_back(size_argument(PyTuple_GET_ITEM(items.ptr(), item), name, item));
    }
    size_t const *data() const noexcept { return given ? values.data() : nullptr; }
};

executor_t for_ram(py::object const &threads, py::object const &memory_domains, py::object const &cpu_class) {
    numbers_t const domains(memory_domains, "memory_domains");
    uform_executor_ram_t options {};
    options.threads = size_argument(threads, "threads");
    options.memory_domains = domains.data();
    options.memory_domains_count = domains.values.size();
    options.cpu_class = static_cast<uform_cpu_class_t>(cpu_class_enumeration.number_or_default(cpu_class, "cpu_class"));
    uform_executor_t *handle = nullptr;
    check([&] { return uform_executor_init_ram(&options, &handle); });
    return {share(handle, uform_executor_free)};
}

executor_t for_vram(py::object const &devices, py::object const &scratch_limit, py::object const &gpu_class) {
    numbers_t const positions(devices, "devices");
    size_t const limit = size_argument(scratch_limit, "scratch_limit");
    auto const kind = static_cast<uform_gpu_class_t>(gpu_class_enumeration.number_or_default(gpu_class, "gpu_class"));
    uform_executor_t *handle = nullptr;
    check([&] { return uform_executor_init_vram(positions.data(), positions.values.size(), limit, kind, &handle); });
    return {share(handle, uform_executor_free)};
}

/** Waiting for an executor inside of a handler of a call that holds it would never end. */
void refuse_from_handler(executor_handle_t const &handle, char const *name) {
    if (progress_t::is_held_here(handle.get()))
        raise(uform_contended_k, UFORM_NO_ITEM, "%s: the executor waits for the handler that waits for it", name);
}

void drain(executor_t const &self, py::object const &mood) {
    executor_handle_t const handle = self.open();
    auto const number = static_cast<uform_mood_t>(mood_enumeration.number(mood, "mood"));
    refuse_from_handler(handle, "drain");
    check([&] { return uform_executor_drain(handle.get(), number); });
}

void close(executor_t &self) {
    if (!self.handle) return;
    refuse_from_handler(self.handle, "close");
    // No call starts from here on. One that another thread has begun keeps the handle until it is done.
    executor_handle_t const handle = std::move(self.handle);
    check([&] { return uform_executor_drain(handle.get(), uform_mood_parked_k); });
}

py::str represent(executor_t const &self) {
    if (!self.handle) return "<uform.Executor closed>";
    py::object const pin = cpu_class_enumeration.member(uform_executor_cpu_class(self.handle.get()));
    return py::str("<uform.Executor threads={} cpu_class={}>")
        .format(uform_executor_threads(self.handle.get()), pin.is_none() ? pin : py::object(pin.attr("name")));
}

void bind_executor(py::module_ &module) {
    py::class_<executor_t>(
        module, "Executor", py::is_final(),
        "The threads that calls run on, apart from any model. One call at a time: a call that finds\n"
        "another one holding it fails with ContendedError. In a `with` block, it closes on exit.")
        .def_static("for_ram", for_ram, py::arg("threads") = 0, py::kw_only(), py::arg("memory_domains") = py::none(),
                    py::arg("cpu_class") = py::none(),
                    "for_ram(threads=0, *, memory_domains=None, cpu_class=None)\n--\n\n"
                    "Makes an executor of host threads.\n\n"
                    "threads: exactly so many; 0: as many as this process may run on (affinity, cgroup quota).\n"
                    "memory_domains: numbers of the NUMA nodes to run on; None: wherever the process may run.\n"
                    "cpu_class: a CPUClass that calls run as; None: the fastest that the machine has.\n\n"
                    "Raises UnsupportedError (a class that this machine cannot run), UnknownKindError,\n"
                    "InvalidArgumentError (a domain that does not exist), OutOfMemoryError.")
        .def_static(
            "for_vram", for_vram, py::arg("devices") = py::none(), py::kw_only(), py::arg("scratch_limit") = 0,
            py::arg("gpu_class") = py::none(),
            "for_vram(devices=None, *, scratch_limit=0, gpu_class=None)\n--\n\n"
            "Makes an executor of one stream a device. This build drives no device, and raises DeviceError for\n"
            "one that is named, UnsupportedError where none is.\n\n"
            "devices: positions in `gpu_devices()`; None: all of them.\n"
            "scratch_limit: bytes of scratch a device; 0: no limit.\n"
            "gpu_class: a GPUClass that calls run as; None: the devices' own.")
        .def_static(
            "on_pool",
            [](py::object const &) {
                raise(uform_unsupported_k, UFORM_NO_ITEM, "pool: executors cannot borrow one, they own their threads");
            },
            py::arg("pool"), "on_pool(pool)\n--\n\nWould borrow a ForkUnion pool; raises UnsupportedError.")
        .def_property_readonly(
            "threads", [](executor_t const &self) { return uform_executor_threads(self.open().get()); },
            "Threads that a call runs on.")
        .def_property_readonly(
            "cpu_class",
            [](executor_t const &self) {
                return cpu_class_enumeration.member(uform_executor_cpu_class(self.open().get()));
            },
            "The CPUClass that it is pinned to, or None.")
        .def_property_readonly(
            "busy", [](executor_t const &self) { return uform_executor_busy(self.open().get()); },
            "Whether a call holds it right now.")
        .def_property_readonly(
            "closed", [](executor_t const &self) { return !self.handle; }, "Whether it is closed.")
        .def("drain", drain, py::arg("mood"),
             "drain(self, mood)\n--\n\n"
             "Waits until no call holds the executor, then applies the Mood to its threads.\n\n"
             "Raises ContendedError inside of a progress handler of a call that holds it, UnknownKindError.")
        .def("close", close,
             "close(self, /)\n--\n\n"
             "Waits for its calls and ends its threads; verbs that name it raise InvalidArgumentError from then on.\n"
             "Closing again does nothing.\n\n"
             "Raises ContendedError inside of a progress handler of a call that holds it.")
        .def("__enter__",
             [](py::object const &self) {
                 self.cast<executor_t &>().open();
                 return self;
             })
        .def("__exit__", [](executor_t &self, py::args const &) { close(self); })
        .def("__repr__", represent);
}

arena_t make_arena(py::object const &executor, py::object const &allocate) {
    executor_handle_t const on = executor_argument(executor);
    if (!allocate.is_none()) return {make_arena_over(allocate)};
    uform_arena_t *handle = nullptr;
    check([&] { return uform_arena_init(on.get(), &handle); });
    return {share(handle, uform_arena_free)};
}

/** The blocks that no view and no call could reach but through this arena. */
blocks_t *own_blocks(PyObject *self) {
    if (!py::detail::is_holder_constructed(self)) return nullptr;
    arena_handle_t const &handle = py::handle(self).cast<arena_t &>().handle;
    return handle.use_count() == 1 ? blocks_of(handle) : nullptr;
}

/** Lets the collector of cycles look through an arena, as an `allocate` may refer to what holds it. */
void collect_arena_cycles(PyHeapTypeObject *heap_type) {
    PyTypeObject *type = &heap_type->ht_type;
    type->tp_flags |= Py_TPFLAGS_HAVE_GC;
    type->tp_traverse = [](PyObject *self, visitproc visit, void *arg) -> int {
        Py_VISIT(Py_TYPE(self));
        blocks_t const *const blocks = own_blocks(self);
        return blocks ? blocks->traverse(visit, arg) : 0;
    };
    type->tp_clear = [](PyObject *self) -> int {
        if (blocks_t *const blocks = own_blocks(self)) blocks->clear();
        return 0;
    };
}

void bind_arena(py::module_ &module) {
    py::class_<arena_t>(
        module, "Arena", py::custom_type_setup(collect_arena_cycles),
        "Memory that outputs land in: one block that grows, rewound by each call that names it.\n\n"
        "Arena(executor=None, *, allocate=None) places it where the executor computes; without one, in host memory "
        "for\n"
        "the calling thread. It allocates when a call first writes to it. A call on an arena that is pinned by an\n"
        "export, or that serves another call, raises ContendedError and changes nothing.\n\n"
        "allocate: a callable for memory of its own, which makes the blocks: each call takes a new one, with\n"
        "    `allocate(bytes)`, and then lets go of the last one's. It answers a writable, C-contiguous buffer of "
        "that\n"
        "    many bytes, or more, aligned to 64; `bytes` is a multiple of 64. Who holds on to a block, as "
        "`view.block`\n"
        "    names it, keeps the outputs in it, which no later call rewrites. It is called on whatever thread runs "
        "the\n"
        "    call, and may wait for no other call. What it raises is the cause of the call's OutOfMemoryError; a\n"
        "    `uform.Error`, and an exception that is no `Exception`, the call raises as it is.")
        .def(py::init(&make_arena), py::arg("executor") = py::none(), py::kw_only(), py::arg("allocate") = py::none())
        .def_property_readonly(
            "capacity", [](arena_t const &self) { return uform_arena_capacity(self.handle.get()); },
            "Bytes that it holds now.")
        .def_property_readonly(
            "busy", [](arena_t const &self) { return uform_arena_busy(self.handle.get()); },
            "Whether a call holds it right now.")
        .def_property_readonly(
            "pins", [](arena_t const &self) { return uform_arena_pins(self.handle.get()); },
            "Exports of its outputs that have not been released.")
        .def("__repr__", [](arena_t const &self) {
            return py::str("<uform.Arena capacity={} pins={}>")
                .format(uform_arena_capacity(self.handle.get()), uform_arena_pins(self.handle.get()));
        });
}

} // namespace

executor_handle_t const &executor_t::open() const {
    if (!handle) raise(uform_invalid_argument_k, UFORM_NO_ITEM, "executor: it is closed");
    return handle;
}

void bind_types(py::module_ &module) {
    bind_enumerations(module);
    bind_executor(module);
    bind_arena(module);
    bind_views(module);
    bind_deferred(module);
}

} // namespace uform::python
