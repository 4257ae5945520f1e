/** Arenas over memory of Python's: blocks that a callable answers, one a call. */
#pragma once
#include <pybind11/pybind11.h>
#include <utility>
#include <vector>

#include "handles.h"

namespace uform::python {

/**
 *  What `allocate` answered for an arena, kept until the arena gives it back.
 *
 *  It belongs to the arena's handle and to the blocks together, since exports can keep a block for longer than the
 *  handle lives. All of it is used with the GIL, which its functions for the library take by themselves.
 */
class blocks_t {
  public:
    explicit blocks_t(py::object allocate) noexcept : allocate_(std::move(allocate)) {}
    blocks_t(blocks_t const &) = delete;
    blocks_t &operator=(blocks_t const &) = delete;

    uform_allocator_t allocator() noexcept { return {allocate, free, this}; }

    /** The last block's object; None where there is none. */
    py::object last() const;
    /** Where the last block begins. */
    char const *last_begin() const noexcept { return static_cast<char const *>(blocks_.back().buffer.buf); }

    /** What a call that failed raises because of `allocate`; empty where it was not at fault. Answers it once. */
    py::object take_exception(uform_failure_t const &failure);

    int traverse(visitproc visit, void *arg) const noexcept;
    /** Breaks cycles of references through `allocate`. No call is made any more. */
    void clear() noexcept;
    /** The arena's handle is gone. */
    void retire() noexcept;

  private:
    struct block_t {
        PyObject *object;
        Py_buffer buffer;
    };

    ~blocks_t() = default;
    static void *allocate(void *handle, size_t bytes) noexcept;
    static void free(void *handle, void *pointer, size_t bytes) noexcept;
    void *take(size_t bytes);
    void give_back(void *pointer) noexcept;

    py::object allocate_; /**< None once the handle is gone. */
    py::object exception_;
    std::vector<block_t> blocks_; /**< The last call's, and while one runs the one before. */
    bool retired_ = false;
};

/** An arena over what the callable answers. */
arena_handle_t make_arena_over(py::object allocate);

/** The blocks of an arena; nullptr where it has memory of its own. They live as long as the handle. */
blocks_t *blocks_of(arena_handle_t const &arena) noexcept;

} // namespace uform::python
