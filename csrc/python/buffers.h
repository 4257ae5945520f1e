/** What calls read: memory that Python's objects export, and batches over it. */
#pragma once
#include <memory>
#include <pybind11/pybind11.h>
#include <string>
#include <vector>

#include "uform/types.h"

namespace uform::python {

namespace py = pybind11;

/** A hold on an object's memory, which keeps the object alive and its memory in place. Released under the GIL. */
class buffer_t {
  public:
    buffer_t() noexcept = default;
    buffer_t(buffer_t &&other) noexcept;
    buffer_t &operator=(buffer_t &&other) noexcept;
    ~buffer_t();

    /**
     *  Takes hold of what the object exports, whatever its layout. Where the object refuses, a BufferError becomes
     *  UNSUPPORTED_LAYOUT and a ValueError INVALID_ARGUMENT, unless it is one of the library's already.
     */
    static buffer_t of(py::handle object, char const *name, size_t item = UFORM_NO_ITEM);

    void *data() const noexcept { return view_->buf; }
    size_t length() const noexcept { return static_cast<size_t>(view_->len); } /**< Bytes. */
    size_t item_size() const noexcept { return static_cast<size_t>(view_->itemsize); }
    int dimensions() const noexcept { return view_->ndim; }
    size_t side(int axis) const noexcept { return static_cast<size_t>(view_->shape[axis]); } /**< In items. */
    bool is_contiguous() const noexcept { return PyBuffer_IsContiguous(view_.get(), 'C'); }
    /** Whether items are native integers of `size` bytes, where they should be; `codes`: of the struct module. */
    bool holds(char const *codes, size_t size) const noexcept;
    /** "'d', 8 bytes", for messages. */
    std::string format() const;

  private:
    std::unique_ptr<Py_buffer> view_; /**< Exporters may point into the structure, so it never moves. */
};

/**
 *  The items of a sequence other than `str`: a copy of the references, since exporters may run code that changes it.
 *  @param needed What to ask for in place of anything else: "a sequence of integers".
 */
py::tuple items_of(py::handle object, char const *name, std::string const &needed);

/** What the items of a batch are. Files are bytes alone; of letters, each is a byte. */
enum class batch_contents_t { texts_k, letters_k, files_k };

/** A batch in the library's form: a tape that is lent, or that was gathered from a sequence. Keeps what it points to.
 */
class batch_input_t {
  public:
    /**
     *  Reads `(data, offsets)` without a copy, or a sequence of `str` and bytes-like objects with one.
     *  @param name Of the argument, for messages.
     */
    batch_input_t(py::handle object, char const *name, batch_contents_t contents = batch_contents_t::texts_k);

    uform_tape_t const &tape() const noexcept { return tape_; }

  private:
    void lend(py::handle data, buffer_t offsets, char const *name);
    void gather(py::tuple const &items, char const *name, batch_contents_t contents);

    struct freed_t {
        void operator()(void *pointer) const noexcept { PyMem_RawFree(pointer); }
    };

    uform_tape_t tape_ {};
    buffer_t data_, offsets_;
    std::unique_ptr<void, freed_t> gathered_; /**< Offsets, then data. */
};

/** An optional question type per text. Keeps what it points to. */
class groups_input_t {
  public:
    /** None, a buffer of uint32 (lent), or a sequence of integers (copied). */
    explicit groups_input_t(py::handle object);

    uint32_t const *data() const noexcept { return data_; } /**< nullptr for None. */
    size_t count() const noexcept { return count_; }

  private:
    buffer_t lent_;
    std::vector<uint32_t> copied_;
    uint32_t const *data_ = nullptr;
    size_t count_ = 0;
};

} // namespace uform::python
