#include "views.h"

#include "blocks.h"
#include "dlpack.h"
#include "enumerations.h"

namespace uform::python {
namespace {

constexpr char const *export_name_k = "uform.export";
constexpr char const *size_format_k = sizeof(unsigned long) == sizeof(size_t) ? "L" : "Q";

/** What an export needs for as long as anyone refers to it: its object, whose capsule this lies in. */
struct export_t {
    pin_t pin;
    Py_ssize_t shape[2];
    Py_ssize_t strides[2];
};

arena_buffer_t const &exported(arena_buffer_t const &self) noexcept { return self; }
arena_buffer_t const &exported(rows_tape_t const &self) noexcept { return self.rows; }

template <typename class_type_> int get_buffer(PyObject *self, Py_buffer *view, int flags) noexcept {
    view->obj = nullptr;
    try {
        exported(py::handle(self).cast<class_type_ const &>()).export_to(view, flags);
        return 0;
    }
    catch (py::error_already_set &error) {
        error.restore();
    }
    catch (std::exception const &error) {
        PyErr_SetString(PyExc_BufferError, error.what());
    }
    return -1;
}

template <typename class_type_> py::custom_type_setup exporter() {
    return py::custom_type_setup([](PyHeapTypeObject *type) {
        type->ht_type.tp_as_buffer = &type->as_buffer;
        type->as_buffer.bf_getbuffer = get_buffer<class_type_>;
        // Nothing to do, since `obj` has the pin; but `numpy.frombuffer` holds on to a buffer only if it has this.
        type->as_buffer.bf_releasebuffer = [](PyObject *, Py_buffer *) {};
    });
}

/**
 *  NumPy asks for this only where there is no buffer, and takes a refused one for none: so that a stale view raises
 *  what it should, instead of passing for an object without numbers.
 */
py::object as_array(py::object const &self, py::object const &dtype, py::object const &copy) {
    auto view = py::reinterpret_steal<py::object>(PyMemoryView_FromObject(self.ptr()));
    if (!view) throw py::error_already_set();
    py::object const numpy = py::module_::import("numpy");
    if (copy.is_none()) return numpy.attr("asarray")(view, dtype);
    return numpy.attr("array")(view, dtype, py::arg("copy") = copy);
}

/** How the memory of a view is handed on. */
template <typename class_type_> void bind_exports(py::class_<class_type_> &bound) {
    bound
        .def_property_readonly(
            "block", [](class_type_ const &self) { return exported(self).block(); },
            "(object, offset): what the arena's `allocate` answered for the memory that the view lies in, and how\n"
            "many bytes into it the view begins. None where the arena has memory of its own.")
        .def("__array__", as_array, py::arg("dtype") = py::none(), py::kw_only(), py::arg("copy") = py::none())
        .def(
            "__dlpack__",
            [](class_type_ const &self, py::handle stream, py::handle max_version, py::handle dl_device,
               py::handle copy) { return export_dlpack(exported(self), stream, max_version, dl_device, copy); },
            py::kw_only(), py::arg("stream") = py::none(), py::arg("max_version") = py::none(),
            py::arg("dl_device") = py::none(), py::arg("copy") = py::none(),
            "__dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None)\n--\n\n"
            "A DLPack capsule, as the array API 2024.12 has it: what `torch.from_dlpack` and its like ask for. It "
            "pins\n"
            "the arena until its consumer lets go of the memory; `copy=True` exports a copy, which pins nothing.\n\n"
            "BF16 exports as bfloat16, E4M3 as float8_e4m3fn, offsets as read-only uint64.\n\n"
            "Raises InvalidArgumentError (a stale view; a stream), ContendedError (a call is rewriting the arena),\n"
            "BufferError (another device than (1, 0); offsets for a consumer of before DLPack 1.0, without a copy).")
        .def(
            "__dlpack_device__", [](class_type_ const &self) { return dlpack_device(exported(self)); },
            "__dlpack_device__(self, /)\n--\n\n(1, 0): the host's memory.");
}

} // namespace

arena_buffer_t::arena_buffer_t(arena_handle_t arena, uform_rows_t const &rows, bool is_flat) noexcept
    : arena_(std::move(arena)), rows_(rows), is_flat_(is_flat) {}

arena_buffer_t::arena_buffer_t(arena_handle_t arena, uint64_t generation, size_t const *offsets, size_t count) noexcept
    : arena_(std::move(arena)), rows_ {const_cast<size_t *>(offsets), count, 1, sizeof(size_t), {}, generation},
      is_offsets_(true), is_flat_(true) {}

void arena_buffer_t::check() const {
    if (is_stale())
        raise(uform_invalid_argument_k, UFORM_NO_ITEM,
              "arena: rewound by a later call, so its outputs of before are gone");
}

py::tuple arena_buffer_t::shape() const {
    if (is_flat_) return py::make_tuple(rows_.rows);
    return py::make_tuple(rows_.rows, rows_.columns);
}

arena_buffer_t arena_buffer_t::slice(size_t begin, size_t end) const noexcept {
    uform_rows_t rows = rows_;
    rows.data = static_cast<char *>(rows.data) + begin * rows.row_bytes;
    rows.rows = end - begin;
    return {arena_, rows, is_flat_};
}

void arena_buffer_t::export_to(Py_buffer *view, int flags) const {
    auto const refuse = [](char const *reason) {
        PyErr_SetString(PyExc_BufferError, reason);
        throw py::error_already_set();
    };
    bool const is_float = rows_.scalar == uform_f32_k;
    char const *const format = is_offsets_ ? size_format_k : is_float ? "f" : "B";
    Py_ssize_t const item_bytes = is_offsets_ ? sizeof(size_t) : is_float ? sizeof(float) : 1;
    auto const rows = static_cast<Py_ssize_t>(rows_.rows), row_bytes = static_cast<Py_ssize_t>(rows_.row_bytes);
    Py_ssize_t const columns = row_bytes / item_bytes;
    if (is_offsets_ && (flags & PyBUF_WRITABLE)) refuse("offsets are read-only");
    bool const is_fortran = is_flat_ || rows <= 1 || columns <= 1;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran) refuse("rows are C-contiguous");
    std::unique_ptr<export_t> made(new export_t {{arena_, rows_.generation}, {rows, columns}, {row_bytes, item_bytes}});
    // The pin goes with this object, not with the buffer's release: some who read a buffer, `torch.frombuffer` among
    // them, release it at once and hold on to its object alone.
    view->obj = PyCapsule_New(made.get(), export_name_k, [](PyObject *capsule) {
        delete static_cast<export_t *>(PyCapsule_GetPointer(capsule, export_name_k));
    });
    if (!view->obj) throw py::error_already_set();
    export_t *const kept = made.release();
    view->buf = rows_.data;
    view->len = static_cast<Py_ssize_t>(bytes());
    view->itemsize = item_bytes;
    view->readonly = is_offsets_;
    view->ndim = is_flat_ ? 1 : 2;
    view->format = flags & PyBUF_FORMAT ? const_cast<char *>(format) : nullptr;
    view->shape = flags & PyBUF_ND ? kept->shape : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? kept->strides : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
}

py::object arena_buffer_t::block() const {
    pin_t const pin(arena_, rows_.generation);
    blocks_t const *const blocks = blocks_of(arena_);
    if (!blocks) return py::none();
    // The last block is this generation's, which the pin holds.
    return py::make_tuple(blocks->last(), static_cast<char const *>(rows_.data) - blocks->last_begin());
}

rows_tape_t::rows_tape_t(arena_handle_t arena, uform_rows_tape_t const &tape, bool is_flat) noexcept
    : rows(arena, tape.rows, is_flat), offsets(arena, tape.rows.generation, tape.offsets, tape.count + 1) {}

arena_buffer_t rows_tape_t::item(py::ssize_t index) const {
    rows.check();
    py::ssize_t const count = static_cast<py::ssize_t>(this->count());
    if (index < -count || index >= count) throw py::index_error("the tape has no such item");
    if (index < 0) index += count;
    // No other thread's call takes the memory away while it is read.
    pin_t const pin(rows.arena(), rows.rows().generation);
    auto const *const bounds = static_cast<size_t const *>(offsets.rows().data) + index;
    size_t const begin = bounds[0], end = bounds[1];
    // Tensors over offsets can be written to, whatever they were told.
    if (begin > end || end > rows.rows().rows)
        raise(uform_invalid_argument_k, static_cast<size_t>(index), "offsets: they were overwritten");
    return rows.slice(begin, end);
}

void bind_views(py::module_ &module) {
    py::class_<arena_buffer_t> buffer(
        module, "ArenaBuffer", py::is_final(), exporter<arena_buffer_t>(),
        "A matrix, or a run of offsets, in an arena: what `numpy.asarray`, `memoryview` and `torch.from_dlpack` read\n"
        "without a copy.\n\n"
        "F32 exports as (rows, columns) of 'f'; BF16 and E4M3 as raw bytes, (rows, row_bytes) of 'B'; offsets as\n"
        "(count + 1,) read-only uint64. An export pins the arena until it is released. Once a later call has rewound\n"
        "the arena, every access raises InvalidArgumentError.");
    bind_exports(buffer);
    buffer
        .def_property_readonly(
            "shape",
            [](arena_buffer_t const &self) {
                self.check();
                return self.shape();
            },
            "(rows, columns) in scalars, whatever they are; (count + 1,) of offsets.")
        .def_property_readonly(
            "scalar",
            [](arena_buffer_t const &self) {
                self.check();
                return scalar_enumeration.member(self.rows().scalar);
            },
            "The Scalar of the rows; None for offsets.")
        .def_property_readonly(
            "nbytes",
            [](arena_buffer_t const &self) {
                self.check();
                return self.bytes();
            },
            "Bytes of all rows.")
        .def("__len__",
             [](arena_buffer_t const &self) {
                 self.check();
                 return self.rows().rows;
             })
        .def("__repr__", [](arena_buffer_t const &self) {
            if (self.is_stale()) return py::str("<uform.ArenaBuffer stale>");
            py::object const scalar = scalar_enumeration.member(self.rows().scalar);
            return py::str("<uform.ArenaBuffer shape={} scalar={}>")
                .format(self.shape(), scalar.is_none() ? scalar : py::object(scalar.attr("name")));
        });

    py::class_<rows_tape_t> tape(
        module, "RowsTape", py::is_final(), exporter<rows_tape_t>(),
        "Rows of items of any length, one after another: item `i` spans rows `offsets[i]` up to `offsets[i + 1]`.\n\n"
        "`len(tape)` is the number of items, `tape[i]` an ArenaBuffer of item `i`'s rows, and the tape itself exports\n"
        "all rows as `tape.rows` does. It goes stale as an ArenaBuffer does.");
    bind_exports(tape);
    tape.def_property_readonly(
            "rows",
            [](rows_tape_t const &self) {
                self.rows.check();
                return self.rows;
            },
            "ArenaBuffer of all rows.")
        .def_property_readonly(
            "offsets",
            [](rows_tape_t const &self) {
                self.rows.check();
                return self.offsets;
            },
            "ArenaBuffer of `len(tape) + 1` row numbers, uint64.")
        .def_property_readonly(
            "shape",
            [](rows_tape_t const &self) {
                self.rows.check();
                return self.rows.shape();
            },
            "(rows of all items, columns), in scalars.")
        .def_property_readonly(
            "scalar",
            [](rows_tape_t const &self) {
                self.rows.check();
                return scalar_enumeration.member(self.rows.rows().scalar);
            },
            "The Scalar of the rows.")
        .def("__len__",
             [](rows_tape_t const &self) {
                 self.rows.check();
                 return self.count();
             })
        .def("__getitem__", &rows_tape_t::item, py::arg("index"))
        .def("__repr__", [](rows_tape_t const &self) {
            if (self.rows.is_stale()) return py::str("<uform.RowsTape stale>");
            py::object const scalar = scalar_enumeration.member(self.rows.rows().scalar);
            return py::str("<uform.RowsTape items={} shape={} scalar={}>")
                .format(self.count(), self.rows.shape(), scalar.attr("name"));
        });
}

} // namespace uform::python
