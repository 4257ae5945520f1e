#include "blocks.h"

#include <algorithm>

namespace uform::python {
namespace {

constexpr size_t line_k = 64;

/** The deleter of a handle over blocks, in which they are found. */
struct release_t {
    blocks_t *blocks;

    void operator()(uform_arena_t *arena) const noexcept {
        {
            without_gil_t without_gil;
            uform_arena_free(arena);
        }
        blocks->retire();
    }
};

py::object kept(py::error_already_set const &error) {
    py::object const exception = error.value();
    if (error.trace()) PyException_SetTraceback(exception.ptr(), error.trace().ptr());
    return exception;
}

} // namespace

py::object blocks_t::last() const {
    return blocks_.empty() ? py::object(py::none()) : py::reinterpret_borrow<py::object>(blocks_.back().object);
}

py::object blocks_t::take_exception(uform_failure_t const &failure) {
    if (failure.status != uform_out_of_memory_k || !exception_) return {};
    py::object const cause = std::exchange(exception_, py::object());
    // Faults of `allocate` itself, and what is to end the program, such as a KeyboardInterrupt, stay what they are.
    if (is_failure(cause) || !PyErr_GivenExceptionMatches(cause.ptr(), PyExc_Exception)) return cause;
    return exception_of(failure, cause);
}

int blocks_t::traverse(visitproc visit, void *arg) const noexcept {
    Py_VISIT(allocate_.ptr());
    Py_VISIT(exception_.ptr());
    return 0;
}

void blocks_t::clear() noexcept {
    // Moved out first: letting go can run code of Python's, which may come back here.
    py::object const allocate = std::exchange(allocate_, py::none());
    py::object const exception = std::exchange(exception_, py::object());
}

void blocks_t::retire() noexcept {
    clear();
    retired_ = true;
    if (blocks_.empty()) delete this;
}

void *blocks_t::allocate(void *handle, size_t bytes) noexcept {
    visit_t const visit;
    if (!visit) return nullptr;
    with_gil_t const with_gil;
    auto &blocks = *static_cast<blocks_t *>(handle);
    py::object const previous = std::move(blocks.exception_);
    try {
        return blocks.take((std::max(bytes, size_t(1)) + line_k - 1) / line_k * line_k);
    }
    catch (py::error_already_set const &error) {
        blocks.exception_ = kept(error);
    }
    catch (std::exception const &) {
        // No memory for what is noted about the block: the library says so.
    }
    return nullptr;
}

void *blocks_t::take(size_t bytes) {
    py::object answer;
    {
        callback_t const callback(nullptr, nullptr);
        answer = allocate_(bytes);
    }
    blocks_.reserve(blocks_.size() + 1);
    if (!PyObject_CheckBuffer(answer.ptr()))
        raise_type(UFORM_NO_ITEM, "allocate: a writable buffer is needed, not %s", type_name(answer));
    block_t block {answer.ptr(), {}};
    if (PyObject_GetBuffer(answer.ptr(), &block.buffer, PyBUF_CONTIG) != 0) {
        py::error_already_set const error;
        raise_from(error, uform_unsupported_layout_k, UFORM_NO_ITEM,
                   "allocate: a writable, C-contiguous buffer is needed");
    }
    if (static_cast<size_t>(block.buffer.len) < bytes) {
        size_t const given = static_cast<size_t>(block.buffer.len);
        PyBuffer_Release(&block.buffer);
        raise(uform_invalid_argument_k, UFORM_NO_ITEM, "allocate: a buffer of %zu bytes is needed, not of %zu", bytes,
              given);
    }
    blocks_.push_back(block);
    answer.release();
    return block.buffer.buf;
}

void blocks_t::free(void *handle, void *pointer, size_t) noexcept {
    visit_t const visit;
    // Without an interpreter, nobody misses the memory.
    if (!visit) return;
    with_gil_t const with_gil;
    // Objects may be let go of while an exception is on its way.
    py::error_scope const error_scope;
    static_cast<blocks_t *>(handle)->give_back(pointer);
}

void blocks_t::give_back(void *pointer) noexcept {
    // The oldest: `allocate` may have answered the same memory again.
    auto const found = std::find_if(blocks_.begin(), blocks_.end(),
                                    [pointer](block_t const &block) { return block.buffer.buf == pointer; });
    block_t block = *found;
    blocks_.erase(found);
    if (retired_ && blocks_.empty()) delete this;
    PyBuffer_Release(&block.buffer);
    Py_DECREF(block.object);
}

arena_handle_t make_arena_over(py::object allocate) {
    if (!PyCallable_Check(allocate.ptr()))
        raise_type(UFORM_NO_ITEM, "allocate: a callable is needed, not %s", type_name(allocate));
    auto *const blocks = new blocks_t(std::move(allocate));
    uform_allocator_t const allocator = blocks->allocator();
    uform_arena_t *handle = nullptr;
    try {
        check([&] { return uform_arena_init_over(&allocator, &handle); });
    }
    catch (...) {
        blocks->retire();
        throw;
    }
    return {handle, release_t {blocks}};
}

blocks_t *blocks_of(arena_handle_t const &arena) noexcept {
    auto const *const release = std::get_deleter<release_t>(arena);
    return release ? release->blocks : nullptr;
}

} // namespace uform::python
