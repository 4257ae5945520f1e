#include "views.h"

#include "enumerations.h"

namespace uform::python {
namespace {

constexpr char const *size_format_k = sizeof(unsigned long) == sizeof(size_t) ? "L" : "Q";

arena_buffer_t &exported(PyObject *self, arena_buffer_t *) { return py::handle(self).cast<arena_buffer_t &>(); }
arena_buffer_t &exported(PyObject *self, rows_tape_t *) { return py::handle(self).cast<rows_tape_t &>().rows; }

template <typename class_type_> int get_buffer(PyObject *self, Py_buffer *view, int flags) noexcept {
    view->obj = nullptr;
    try {
        exported(self, static_cast<class_type_ *>(nullptr)).export_to(self, view, flags);
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

template <typename class_type_> void release_buffer(PyObject *self, Py_buffer *view) noexcept {
    exported(self, static_cast<class_type_ *>(nullptr)).release(view);
}

template <typename class_type_> py::custom_type_setup exporter() {
    return py::custom_type_setup([](PyHeapTypeObject *type) {
        type->ht_type.tp_as_buffer = &type->as_buffer;
        type->as_buffer.bf_getbuffer = get_buffer<class_type_>;
        type->as_buffer.bf_releasebuffer = release_buffer<class_type_>;
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

} // namespace

arena_buffer_t::arena_buffer_t(arena_handle_t arena, uform_rows_t const &rows, bool is_flat) noexcept
    : arena_(std::move(arena)), rows_(rows), is_flat_(is_flat), format_(rows.scalar == uform_f32_k ? "f" : "B"),
      item_bytes_(rows.scalar == uform_f32_k ? sizeof(float) : 1) {
    shape_[0] = static_cast<Py_ssize_t>(rows.rows);
    shape_[1] = static_cast<Py_ssize_t>(rows.row_bytes) / item_bytes_;
    strides_[0] = static_cast<Py_ssize_t>(rows.row_bytes);
    strides_[1] = item_bytes_;
}

arena_buffer_t::arena_buffer_t(arena_handle_t arena, uint64_t generation, size_t const *offsets, size_t count) noexcept
    : arena_(std::move(arena)), rows_ {const_cast<size_t *>(offsets), count, 1, sizeof(size_t), {}, generation},
      is_offsets_(true), is_flat_(true), format_(size_format_k), item_bytes_(sizeof(size_t)),
      shape_ {static_cast<Py_ssize_t>(count), 1}, strides_ {sizeof(size_t), sizeof(size_t)} {}

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

void arena_buffer_t::export_to(PyObject *owner, Py_buffer *view, int flags) {
    auto const refuse = [](char const *reason) {
        PyErr_SetString(PyExc_BufferError, reason);
        throw py::error_already_set();
    };
    int const dimensions = is_flat_ ? 1 : 2;
    if (is_offsets_ && (flags & PyBUF_WRITABLE)) refuse("offsets are read-only");
    bool const is_fortran = dimensions == 1 || shape_[0] <= 1 || shape_[1] <= 1;
    if ((flags & PyBUF_F_CONTIGUOUS) == PyBUF_F_CONTIGUOUS && !is_fortran) refuse("rows are C-contiguous");
    if (uform_arena_pin(arena_.get(), rows_.generation) != uform_success_k) {
        uform_failure_t failure;
        uform_last_failure(&failure);
        raise(failure);
    }
    view->buf = rows_.data;
    view->obj = Py_NewRef(owner);
    view->len = static_cast<Py_ssize_t>(bytes());
    view->itemsize = item_bytes_;
    view->readonly = is_offsets_;
    view->ndim = dimensions;
    view->format = flags & PyBUF_FORMAT ? const_cast<char *>(format_) : nullptr;
    view->shape = flags & PyBUF_ND ? shape_ : nullptr;
    view->strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? strides_ : nullptr;
    view->suboffsets = nullptr;
    view->internal = nullptr;
}

void arena_buffer_t::release(Py_buffer *) noexcept { uform_arena_unpin(arena_.get()); }

rows_tape_t::rows_tape_t(arena_handle_t arena, uform_rows_tape_t const &tape, bool is_flat) noexcept
    : rows(arena, tape.rows, is_flat), offsets(arena, tape.rows.generation, tape.offsets, tape.count + 1) {}

arena_buffer_t rows_tape_t::item(py::ssize_t index) const {
    rows.check();
    py::ssize_t const count = static_cast<py::ssize_t>(this->count());
    if (index < -count || index >= count) throw py::index_error("the tape has no such item");
    if (index < 0) index += count;
    // A pin, so that no other thread's call takes the memory away while it is read.
    check([&] { return uform_arena_pin(rows.arena().get(), rows.rows().generation); });
    auto const *bounds = static_cast<size_t const *>(offsets.rows().data) + index;
    arena_buffer_t const view = rows.slice(bounds[0], bounds[1]);
    uform_arena_unpin(rows.arena().get());
    return view;
}

void bind_views(py::module_ &module) {
    py::class_<arena_buffer_t>(
        module, "ArenaBuffer", py::is_final(), exporter<arena_buffer_t>(),
        "A matrix, or a run of offsets, in an arena: what `numpy.asarray` and `memoryview` read without a copy.\n\n"
        "F32 exports as (rows, columns) of 'f'; BF16 and E4M3 as raw bytes, (rows, row_bytes) of 'B'; offsets as\n"
        "(count + 1,) read-only uint64. An export pins the arena until it is released. Once a later call has rewound\n"
        "the arena, every access raises InvalidArgumentError.")
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
        .def("__array__", as_array, py::arg("dtype") = py::none(), py::kw_only(), py::arg("copy") = py::none())
        .def("__repr__", [](arena_buffer_t const &self) {
            if (self.is_stale()) return py::str("<uform.ArenaBuffer stale>");
            py::object const scalar = scalar_enumeration.member(self.rows().scalar);
            return py::str("<uform.ArenaBuffer shape={} scalar={}>")
                .format(self.shape(), scalar.is_none() ? scalar : py::object(scalar.attr("name")));
        });

    py::class_<rows_tape_t>(
        module, "RowsTape", py::is_final(), exporter<rows_tape_t>(),
        "Rows of items of any length, one after another: item `i` spans rows `offsets[i]` up to `offsets[i + 1]`.\n\n"
        "`len(tape)` is the number of items, `tape[i]` an ArenaBuffer of item `i`'s rows, and the tape itself exports\n"
        "all rows as `tape.rows` does. It goes stale as an ArenaBuffer does.")
        .def_property_readonly(
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
        .def("__array__", as_array, py::arg("dtype") = py::none(), py::kw_only(), py::arg("copy") = py::none())
        .def("__repr__", [](rows_tape_t const &self) {
            if (self.rows.is_stale()) return py::str("<uform.RowsTape stale>");
            py::object const scalar = scalar_enumeration.member(self.rows.rows().scalar);
            return py::str("<uform.RowsTape items={} shape={} scalar={}>")
                .format(self.count(), self.rows.shape(), scalar.attr("name"));
        });
}

} // namespace uform::python
