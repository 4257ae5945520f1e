/** Texts of Python as UTF-8, written where it is wanted: the interpreter's own encoders make an object each time. */
#pragma once
#include <cstdint>
#include <cstring>
#include <Python.h>
#include <utility>

namespace uform::python {

/** A code point that has no UTF-8, and where it stands. */
struct surrogate_t {
    Py_UCS4 code = 0; /**< Zero: there is none. */
    size_t index = 0;
};

/** Calls `visitor(pointer, count)` with the text's code points in the width that it is stored in. */
template <typename visitor_type_> auto visit_units(PyObject *text, visitor_type_ &&visitor) noexcept {
    size_t const count = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
    void const *data = PyUnicode_DATA(text);
    switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND: return visitor(static_cast<Py_UCS1 const *>(data), count);
    case PyUnicode_2BYTE_KIND: return visitor(static_cast<Py_UCS2 const *>(data), count);
    default: return visitor(static_cast<Py_UCS4 const *>(data), count);
    }
}

/** Bytes of the text in UTF-8. Where it has a surrogate, the first one is told and the size means nothing. */
inline size_t utf8_size(PyObject *text, surrogate_t &surrogate) noexcept {
    if (PyUnicode_IS_ASCII(text)) return static_cast<size_t>(PyUnicode_GET_LENGTH(text));
    return visit_units(text, [&](auto const *units, size_t count) noexcept {
        size_t size = count;
        for (size_t index = 0; index != count; ++index) {
            Py_UCS4 const code = units[index];
            size += (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
            if (code - 0xD800 < 0x800) {
                surrogate = {code, index};
                break;
            }
        }
        return size;
    });
}

/** Writes the text, which has no surrogate. Returns where it ends. */
inline uint8_t *write_utf8(PyObject *text, uint8_t *out) noexcept {
    if (PyUnicode_IS_ASCII(text)) {
        size_t const size = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
        std::memcpy(out, PyUnicode_DATA(text), size);
        return out + size;
    }
    return visit_units(text, [out](auto const *units, size_t count) mutable noexcept {
        auto const tail = [](Py_UCS4 bits) noexcept { return static_cast<uint8_t>(0x80 | (bits & 0x3F)); };
        for (size_t index = 0; index != count; ++index) {
            Py_UCS4 const code = units[index];
            if (code < 0x80) {
                *out++ = static_cast<uint8_t>(code);
                continue;
            }
            if (code < 0x800) {
                *out++ = static_cast<uint8_t>(0xC0 | code >> 6);
            }
            else {
                if (code < 0x10000) {
                    *out++ = static_cast<uint8_t>(0xE0 | code >> 12);
                }
                else {
                    *out++ = static_cast<uint8_t>(0xF0 | code >> 18);
                    *out++ = tail(code >> 12);
                }
                *out++ = tail(code >> 6);
            }
            *out++ = tail(code);
        }
        return out;
    });
}

} // namespace uform::python
