/** Views of what calls leave in arenas: `ArenaBuffer` and `RowsTape` of Python, and their buffer protocol. */
#pragma once
#include <pybind11/pybind11.h>

#include "uform/types.h"

#include "handles.h"

namespace uform::python {

/** Memory of an arena, of one generation. Exporting it pins the arena. Does not change once it is made. */
class arena_buffer_t {
  public:
    /** Rows of an output; `is_flat`: of one column, which is no axis of its own. */
    arena_buffer_t(arena_handle_t arena, uform_rows_t const &rows, bool is_flat = false) noexcept;
    /** Offsets of an output; not to be written, since items are found by them. */
    arena_buffer_t(arena_handle_t arena, uint64_t generation, size_t const *offsets, size_t count) noexcept;

    /** INVALID_ARGUMENT where the arena was rewound since. */
    void check() const;
    bool is_stale() const noexcept { return uform_arena_generation(arena_.get()) != rows_.generation; }

    uform_rows_t const &rows() const noexcept { return rows_; }
    arena_handle_t const &arena() const noexcept { return arena_; }
    bool is_offsets() const noexcept { return is_offsets_; }
    bool is_flat() const noexcept { return is_flat_; }
    /** In scalars, or of offsets. */
    py::tuple shape() const;
    size_t bytes() const noexcept { return rows_.rows * rows_.row_bytes; }
    /** Rows from `begin` up to `end`. */
    arena_buffer_t slice(size_t begin, size_t end) const noexcept;

    /** The buffer protocol. What it exports pins the arena until the last reference to its `obj` is gone. */
    void export_to(Py_buffer *view, int flags) const;
    /** (object, offset): what `allocate` answered for the memory, and bytes into it; None of an arena's own memory. */
    py::object block() const;

  private:
    arena_handle_t arena_;
    uform_rows_t rows_;
    bool is_offsets_ = false;
    bool is_flat_ = false;
};

/** Rows of items of any length. Exports its rows. */
struct rows_tape_t {
    arena_buffer_t rows;
    arena_buffer_t offsets;

    rows_tape_t(arena_handle_t arena, uform_rows_tape_t const &tape, bool is_flat = false) noexcept;

    size_t count() const noexcept { return offsets.rows().rows - 1; }
    /** Rows of an item; counted from the end where it is negative. IndexError where there is none. */
    arena_buffer_t item(py::ssize_t index) const;
};

void bind_views(py::module_ &module);

} // namespace uform::python
