#include "buffers.h"

#include <bit>
#include <cstring>
#include <limits>

#include "enumerations.h"
#include "failure.h"
#include "utf8.h"

namespace uform::python {
namespace {

bool is_text(py::handle object) noexcept { return PyUnicode_Check(object.ptr()); }

/** Bytes that Python's own types hold: never offsets, and no batch by themselves. */
bool is_bytes(py::handle object) noexcept {
    return PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr()) || PyMemoryView_Check(object.ptr());
}

/** Exports a buffer, as scalars of NumPy that are texts do as well. */
bool exports(py::handle object) noexcept { return PyObject_CheckBuffer(object.ptr()) && !is_text(object); }

/** An object's memory as bytes. Errors name the item. */
buffer_t bytes_of(py::handle object, char const *name, size_t item) {
    buffer_t buffer = buffer_t::of(object, name, item);
    char const *what = item == UFORM_NO_ITEM ? "the data of the tape" : "an item";
    if (buffer.item_size() != 1 || buffer.dimensions() == 0)
        raise(uform_unsupported_layout_k, item, "%s: %s has to be a buffer of bytes, not of %s", name, what,
              buffer.format().c_str());
    if (!buffer.is_contiguous()) raise(uform_unsupported_layout_k, item, "%s: %s has to be C-contiguous", name, what);
    return buffer;
}

void check_vector(buffer_t const &buffer, size_t alignment, char const *what) {
    if (buffer.dimensions() != 1)
        raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: one dimension is needed, not %d", what,
              buffer.dimensions());
    if (!buffer.is_contiguous())
        raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: they have to be C-contiguous", what);
    if (reinterpret_cast<uintptr_t>(buffer.data()) % alignment)
        raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: they have to be aligned to %zu bytes", what, alignment);
}

} // namespace

buffer_t::buffer_t(buffer_t &&other) noexcept = default;

buffer_t &buffer_t::operator=(buffer_t &&other) noexcept {
    std::swap(view_, other.view_);
    return *this;
}

buffer_t::~buffer_t() {
    if (view_) PyBuffer_Release(view_.get());
}

buffer_t buffer_t::of(py::handle object, char const *name, size_t item) {
    auto view = std::make_unique<Py_buffer>();
    if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_FULL_RO) != 0) {
        py::error_already_set error;
        bool const is_layout = error.matches(PyExc_BufferError);
        if (!is_layout && (!error.matches(PyExc_ValueError) || is_failure(error.value()))) throw error;
        raise_from(error, is_layout ? uform_unsupported_layout_k : uform_invalid_argument_k, item,
                   "%s: the memory of %.60s cannot be read: %.200s", name, type_name(object),
                   py::str(error.value()).cast<std::string>().c_str());
    }
    buffer_t buffer;
    buffer.view_ = std::move(view);
    return buffer;
}

bool buffer_t::holds(char const *codes, size_t size) const noexcept {
    char const *format = view_->format ? view_->format : "B";
    char const native = std::endian::native == std::endian::little ? '<' : '>';
    if (*format == '@' || *format == '=' || *format == native) ++format;
    return item_size() == size && format[0] && !format[1] && std::strchr(codes, format[0]);
}

std::string buffer_t::format() const {
    return "'" + std::string(view_->format ? view_->format : "B") + "', " + std::to_string(item_size()) + " bytes";
}

py::tuple items_of(py::handle object, char const *name, std::string const &needed) {
    if (!PySequence_Check(object.ptr()) || is_text(object))
        raise_type(UFORM_NO_ITEM, "%s: %s is needed, not %s", name, needed.c_str(), type_name(object));
    auto items = py::reinterpret_steal<py::tuple>(PySequence_Tuple(object.ptr()));
    if (items) return items;
    py::error_already_set error;
    // Arrays without a dimension pass for sequences until they are asked for an item.
    if (error.matches(PyExc_TypeError) && PyObject_Size(object.ptr()) < 0) {
        PyErr_Clear();
        raise_type(UFORM_NO_ITEM, "%s: %s is needed, not a %s without a length", name, needed.c_str(),
                   type_name(object));
    }
    throw error;
}

batch_input_t::batch_input_t(py::handle object, char const *name, batch_contents_t contents) {
    if (is_text(object) || is_bytes(object))
        raise_type(UFORM_NO_ITEM, "%s: a sequence is needed, not a single %s: wrap it in a list", name,
                   type_name(object));
    char const *what = contents == batch_contents_t::files_k ? "bytes-like objects" : "str or bytes-like objects";
    if (PyTuple_Check(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2) {
        py::handle const second = PyTuple_GET_ITEM(object.ptr(), 1);
        if (exports(second) && !PyBytes_Check(second.ptr()) && !PyByteArray_Check(second.ptr())) {
            buffer_t offsets = buffer_t::of(second, name);
            // Two buffers of bytes are two texts.
            if (offsets.item_size() != 1) {
                lend(PyTuple_GET_ITEM(object.ptr(), 0), std::move(offsets), name);
                return;
            }
        }
    }
    std::string const needed = std::string("a sequence of ") + what + ", or a tuple (data, offsets),";
    gather(items_of(object, name, needed), name, contents);
}

void batch_input_t::lend(py::handle data, buffer_t offsets, char const *name) {
    std::string const what = std::string(name) + ": the offsets of the tape";
    if (!exports(data))
        raise_type(UFORM_NO_ITEM, "%s: the data of the tape has to be a buffer, not %s", name, type_name(data));
    data_ = bytes_of(data, name, UFORM_NO_ITEM);
    if (!offsets.holds("QqLlNn", sizeof(size_t)))
        raise(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s have to be integers of %zu bytes (numpy.uint64), not %s",
              what.c_str(), sizeof(size_t), offsets.format().c_str());
    check_vector(offsets, alignof(size_t), what.c_str());
    if (offsets.length() == 0)
        raise(uform_invalid_argument_k, UFORM_NO_ITEM, "%s: there are none, but `count + 1` are needed", what.c_str());
    offsets_ = std::move(offsets);
    tape_.data = data_.data();
    tape_.length = data_.length();
    tape_.offsets = static_cast<size_t const *>(offsets_.data());
    tape_.count = offsets_.length() / sizeof(size_t) - 1;
}

void batch_input_t::gather(py::tuple const &items, char const *name, batch_contents_t contents) {
    size_t const count = items.size();
    size_t bytes = 0;
    std::vector<buffer_t> buffers; // Of items that are neither str nor bytes, in their order.
    bool const are_files = contents == batch_contents_t::files_k;
    for (size_t item = 0; item != count; ++item) {
        PyObject *object = PyTuple_GET_ITEM(items.ptr(), item);
        if (PyBytes_Check(object)) {
            bytes += static_cast<size_t>(PyBytes_GET_SIZE(object));
        }
        else if (are_files && (PyUnicode_Check(object) || PyObject_HasAttrString(object, "__fspath__"))) {
            raise_type(item,
                       "%s: item %zu is a %s, but the file's bytes are needed: read it first, as by open(path, 'rb')",
                       name, item, type_name(object));
        }
        else if (PyUnicode_Check(object)) {
#if PY_VERSION_HEX < 0x030C0000
            if (PyUnicode_READY(object) != 0) throw py::error_already_set();
#endif
            if (contents == batch_contents_t::letters_k && !PyUnicode_IS_ASCII(object))
                raise(uform_invalid_argument_k, item, "%s: item %zu has a character that is not a single byte", name,
                      item);
            surrogate_t surrogate;
            bytes += utf8_size(object, surrogate);
            if (surrogate.code)
                raise(uform_malformed_k, item,
                      "%s: item %zu has a lone surrogate, U+%04X at index %zu, and so no UTF-8", name, item,
                      static_cast<unsigned>(surrogate.code), surrogate.index);
        }
        else if (PyObject_CheckBuffer(object)) {
            buffers.push_back(bytes_of(object, name, item));
            bytes += buffers.back().length();
        }
        else {
            raise_type(item, "%s: item %zu has to be %sbytes-like, not %s", name, item, are_files ? "" : "str or ",
                       type_name(object));
        }
    }

    size_t const offsets_bytes = (count + 1) * sizeof(size_t);
    gathered_.reset(PyMem_RawMalloc(offsets_bytes + bytes));
    if (!gathered_) raise(uform_out_of_memory_k, UFORM_NO_ITEM, "%s: no memory to gather %zu bytes", name, bytes);
    auto *const offsets = static_cast<size_t *>(gathered_.get());
    auto *const data = reinterpret_cast<uint8_t *>(offsets + count + 1);
    uint8_t *end = data;
    auto buffer = buffers.begin();
    for (size_t item = 0; item != count; ++item) {
        offsets[item] = static_cast<size_t>(end - data);
        PyObject *object = PyTuple_GET_ITEM(items.ptr(), item);
        if (PyBytes_Check(object)) {
            size_t const size = static_cast<size_t>(PyBytes_GET_SIZE(object));
            std::memcpy(end, PyBytes_AS_STRING(object), size);
            end += size;
        }
        else if (PyUnicode_Check(object)) {
            end = write_utf8(object, end);
        }
        else {
            if (buffer->length()) std::memcpy(end, buffer->data(), buffer->length());
            end += buffer++->length();
        }
    }
    offsets[count] = static_cast<size_t>(end - data);
    tape_ = {data, bytes, offsets, count};
}

groups_input_t::groups_input_t(py::handle object) {
    constexpr char const *name_k = "temperature_groups";
    if (object.is_none()) return;
    if (exports(object)) {
        buffer_t buffer = buffer_t::of(object, name_k);
        if (buffer.holds("IL", sizeof(uint32_t))) {
            check_vector(buffer, alignof(uint32_t), name_k);
            lent_ = std::move(buffer);
            count_ = lent_.length() / sizeof(uint32_t);
            // An empty export may have no address, and would then pass for none given.
            static uint32_t const none_k = 0;
            data_ = count_ ? static_cast<uint32_t const *>(lent_.data()) : &none_k;
            return;
        }
    }
    py::tuple const items = items_of(object, name_k, "a sequence of integers");
    count_ = items.size();
    copied_.reserve(count_ + 1);
    for (size_t item = 0; item != count_; ++item) {
        size_t const group = size_argument(PyTuple_GET_ITEM(items.ptr(), item), name_k, item);
        if (group > std::numeric_limits<uint32_t>::max())
            raise(uform_invalid_argument_k, item, "%s: item %zu is in group %zu, more than any model has", name_k, item,
                  group);
        copied_.push_back(static_cast<uint32_t>(group));
    }
    data_ = copied_.data();
}

} // namespace uform::python
