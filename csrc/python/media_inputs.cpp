#include "media_inputs.h"

#include <string>

#include "failure.h"

namespace uform::python {
namespace {

constexpr size_t channels_k = 3;

/** What an argument of arrays takes. */
struct arrays_t {
    char const *name;      /**< Of the argument. */
    char const *codes;     /**< Of the struct module, for the numbers. */
    size_t size;           /**< Bytes of a number. */
    int dimensions;        /**< Of an item. */
    char const *item_form; /**< Of an item, for messages. */
    char const *many_form; /**< Of all items in one array. */
    char const *number;    /**< NumPy's name for its type. */
};

constexpr arrays_t pixels_k {"pixels", "B", sizeof(uint8_t), 3, "[height, width, 3]", "[count, height, width, 3]",
                             "uint8"};
constexpr arrays_t samples_k {"samples", "f", sizeof(float), 1, "[samples]", "[count, samples]", "float32"};

std::string shape_of(buffer_t const &buffer) {
    std::string text = "[";
    for (int axis = 0; axis != buffer.dimensions(); ++axis)
        text += (axis ? ", " : "") + std::to_string(buffer.side(axis));
    return text + "]";
}

/** "item 3", or "they" for all items in one array. */
std::string subject(size_t item) { return item == UFORM_NO_ITEM ? "they" : "item " + std::to_string(item); }

/** Takes hold of an array of `dimensions` axes. */
buffer_t array_of(arrays_t const &arrays, py::handle object, size_t item) {
    bool const is_item = item != UFORM_NO_ITEM;
    int const dimensions = arrays.dimensions + !is_item;
    char const *form = is_item ? arrays.item_form : arrays.many_form;
    buffer_t buffer = buffer_t::of(object, arrays.name, item);
    std::string const who = subject(item);
    if (!buffer.holds(arrays.codes, arrays.size))
        raise(uform_unsupported_layout_k, item, "%s: %s ha%s to be of %s, not of %s", arrays.name, who.c_str(),
              is_item ? "s" : "ve", arrays.number, buffer.format().c_str());
    if (buffer.dimensions() != dimensions) {
        bool const is_single = !is_item && buffer.dimensions() == arrays.dimensions;
        raise(uform_shape_mismatch_k, item, "%s: %s ha%s to be %s, not %s%s", arrays.name, who.c_str(),
              is_item ? "s" : "ve", form, shape_of(buffer).c_str(), is_single ? ": wrap a single one in a list" : "");
    }
    if (!buffer.is_contiguous())
        raise(uform_unsupported_layout_k, item, "%s: %s ha%s to be C-contiguous, as numpy.ascontiguousarray makes it",
              arrays.name, who.c_str(), is_item ? "s" : "ve");
    if (reinterpret_cast<uintptr_t>(buffer.data()) % arrays.size && buffer.length())
        raise(uform_unsupported_layout_k, item, "%s: %s ha%s to be aligned to %zu bytes", arrays.name, who.c_str(),
              is_item ? "s" : "ve", arrays.size);
    return buffer;
}

/** Whether the argument is one array of numbers. Arrays of objects are sequences. */
bool is_array(py::handle object, char const *name) {
    if (!PyObject_CheckBuffer(object.ptr()) || PyUnicode_Check(object.ptr())) return false;
    if (PyBytes_Check(object.ptr()) || PyByteArray_Check(object.ptr()))
        raise_type(UFORM_NO_ITEM, "%s: a sequence of arrays is needed, not %s", name, type_name(object));
    return !buffer_t::of(object, name).holds("O", sizeof(PyObject *));
}

/** The items of a sequence, as arrays. */
std::vector<buffer_t> arrays_in(arrays_t const &arrays, py::handle object) {
    std::string const needed = std::string("a sequence of ") + arrays.item_form + " arrays of " + arrays.number +
                               ", or one " + arrays.many_form + ",";
    py::tuple const items = items_of(object, arrays.name, needed);
    std::vector<buffer_t> buffers;
    buffers.reserve(items.size());
    for (size_t item = 0; item != items.size(); ++item) {
        py::handle const array = PyTuple_GET_ITEM(items.ptr(), item);
        if (!PyObject_CheckBuffer(array.ptr()) || PyUnicode_Check(array.ptr()))
            raise_type(item, "%s: item %zu has to be an array of %s, as numpy.asarray makes it, not %s", arrays.name,
                       item, arrays.number, type_name(array));
        buffers.push_back(array_of(arrays, array, item));
    }
    return buffers;
}

/** An empty export may have no address. */
template <typename number_type_> number_type_ const *numbers_of(buffer_t const &buffer) noexcept {
    static number_type_ const none_k {};
    return buffer.data() ? static_cast<number_type_ const *>(buffer.data()) : &none_k;
}

void check_channels(buffer_t const &buffer, size_t item) {
    int const last = buffer.dimensions() - 1;
    if (buffer.side(last) == channels_k) return;
    char const *hint = buffer.side(last - 2) == channels_k ? ": channels come last" : "";
    raise(uform_shape_mismatch_k, item, "pixels: %s ha%s to be %s, not %s%s", subject(item).c_str(),
          item == UFORM_NO_ITEM ? "ve" : "s", item == UFORM_NO_ITEM ? pixels_k.many_form : pixels_k.item_form,
          shape_of(buffer).c_str(), hint);
}

} // namespace

pixels_input_t::pixels_input_t(py::handle object) {
    if (is_array(object, pixels_k.name)) {
        buffers_.push_back(array_of(pixels_k, object, UFORM_NO_ITEM));
        buffer_t const &all = buffers_.back();
        check_channels(all, UFORM_NO_ITEM);
        size_t const height = all.side(1), width = all.side(2);
        auto const *data = numbers_of<uint8_t>(all);
        items_.reserve(all.side(0));
        for (size_t item = 0; item != all.side(0); ++item)
            items_.push_back({data + item * height * width * channels_k, height, width});
        return;
    }
    buffers_ = arrays_in(pixels_k, object);
    items_.reserve(buffers_.size());
    for (size_t item = 0; item != buffers_.size(); ++item) {
        buffer_t const &picture = buffers_[item];
        check_channels(picture, item);
        items_.push_back({numbers_of<uint8_t>(picture), picture.side(0), picture.side(1)});
    }
}

samples_input_t::samples_input_t(py::handle object) {
    if (is_array(object, samples_k.name)) {
        buffers_.push_back(array_of(samples_k, object, UFORM_NO_ITEM));
        buffer_t const &all = buffers_.back();
        size_t const count = all.side(1);
        auto const *data = numbers_of<float>(all);
        items_.reserve(all.side(0));
        for (size_t item = 0; item != all.side(0); ++item) items_.push_back({data + item * count, count});
        return;
    }
    buffers_ = arrays_in(samples_k, object);
    items_.reserve(buffers_.size());
    for (buffer_t const &recording : buffers_) items_.push_back({numbers_of<float>(recording), recording.side(0)});
}

} // namespace uform::python
