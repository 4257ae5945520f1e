#include "dlpack.h"

#include <ATen/dlpack.h>
#include <cstring>
#include <new>
#include <optional>

namespace uform::python {
namespace {

constexpr std::align_val_t alignment_k {64};

/** Memory of a copy's own. */
class copy_t {
  public:
    explicit copy_t(size_t bytes) : data_(::operator new(bytes, alignment_k)) {}
    copy_t(copy_t const &) = delete;
    copy_t &operator=(copy_t const &) = delete;
    ~copy_t() { ::operator delete(data_, alignment_k); }
    void *data() const noexcept { return data_; }

  private:
    void *data_;
};

struct legacy_t {
    using managed_t = DLManagedTensor;
    static constexpr char const *name_k = "dltensor";
};

struct versioned_t {
    using managed_t = DLManagedTensorVersioned;
    static constexpr char const *name_k = "dltensor_versioned";
};

/** What a capsule hands over. Consumers delete it on any thread, without the GIL, after the interpreter's end even. */
template <typename protocol_type_> struct export_t {
    using managed_t = typename protocol_type_::managed_t;

    managed_t managed {};
    int64_t shape[2];
    int64_t strides[2];
    /** One of them. */
    std::optional<pin_t> pin;
    std::optional<copy_t> copy;

    static void release(managed_t *managed) noexcept { delete static_cast<export_t *>(managed->manager_ctx); }
};

DLDataType data_type(arena_buffer_t const &view) noexcept {
    if (view.is_offsets()) return {kDLUInt, 8 * sizeof(size_t), 1};
    switch (view.rows().scalar) {
    case uform_bf16_k: return {kDLBfloat, 16, 1};
    case uform_e4m3_k: return {kDLFloat8_e4m3fn, 8, 1};
    default: return {kDLFloat, 32, 1};
    }
}

template <typename protocol_type_> py::object make_capsule(arena_buffer_t const &view, bool is_copy) {
    using made_t = export_t<protocol_type_>;
    uform_rows_t const &rows = view.rows();
    auto made = std::make_unique<made_t>();
    made->pin.emplace(view.arena(), rows.generation);
    void *data = rows.data;
    if (is_copy) {
        data = made->copy.emplace(view.bytes()).data();
        {
            without_gil_t without_gil;
            std::memcpy(data, rows.data, view.bytes());
        }
        made->pin.reset();
    }
    made->shape[0] = static_cast<int64_t>(rows.rows);
    made->shape[1] = static_cast<int64_t>(rows.columns);
    made->strides[0] = view.is_flat() ? 1 : made->shape[1];
    made->strides[1] = 1;
    // The standard has no address for a tensor without elements.
    made->managed.dl_tensor = {view.bytes() ? data : nullptr,
                               {kDLCPU, 0},
                               view.is_flat() ? 1 : 2,
                               data_type(view),
                               made->shape,
                               made->strides,
                               0};
    made->managed.manager_ctx = made.get();
    made->managed.deleter = made_t::release;
    if constexpr (std::is_same_v<protocol_type_, versioned_t>) {
        made->managed.version = {1, 0};
        if (view.is_offsets() && !is_copy) made->managed.flags |= DLPACK_FLAG_BITMASK_READ_ONLY;
        if (is_copy) made->managed.flags |= DLPACK_FLAG_BITMASK_IS_COPIED;
    }
    // Consumers rename what they take over.
    PyObject *const capsule = PyCapsule_New(&made->managed, protocol_type_::name_k, [](PyObject *unconsumed) {
        if (!PyCapsule_IsValid(unconsumed, protocol_type_::name_k)) return;
        void *const managed = PyCapsule_GetPointer(unconsumed, protocol_type_::name_k);
        made_t::release(static_cast<typename protocol_type_::managed_t *>(managed));
    });
    if (!capsule) throw py::error_already_set();
    made.release();
    return py::reinterpret_steal<py::object>(capsule);
}

/** Two integers, such as a version or a device has them. */
std::pair<long, long> pair_argument(py::handle object, char const *name) {
    long numbers[2] {};
    if (PyTuple_Check(object.ptr()) && PyTuple_GET_SIZE(object.ptr()) == 2) {
        for (int part = 0; part != 2; ++part) {
            numbers[part] = PyLong_AsLong(PyTuple_GET_ITEM(object.ptr(), part));
            if (numbers[part] == -1 && PyErr_Occurred()) throw py::error_already_set();
        }
        return {numbers[0], numbers[1]};
    }
    raise_type(UFORM_NO_ITEM, "%s: a tuple of two integers is needed, not %s", name, type_name(object));
}

[[noreturn]] void refuse(char const *reason) {
    PyErr_SetString(PyExc_BufferError, reason);
    throw py::error_already_set();
}

} // namespace

py::object export_dlpack(arena_buffer_t const &view, py::handle stream, py::handle max_version, py::handle dl_device,
                         py::handle copy) {
    if (!stream.is_none())
        raise(uform_invalid_argument_k, UFORM_NO_ITEM, "stream: the memory is the host's, where it must be None");
    bool const is_versioned = !max_version.is_none() && pair_argument(max_version, "max_version").first >= 1;
    if (!dl_device.is_none() && pair_argument(dl_device, "dl_device") != std::pair<long, long>(kDLCPU, 0))
        refuse("dl_device: the memory is the host's, (1, 0), and is exported to no other device");
    int const is_copy = copy.is_none() ? 0 : PyObject_IsTrue(copy.ptr());
    if (is_copy < 0) throw py::error_already_set();
    if (is_versioned) return make_capsule<versioned_t>(view, is_copy);
    if (view.is_offsets() && !is_copy)
        refuse("offsets are read-only, which takes a consumer of DLPack 1.0 or later, or copy=True");
    return make_capsule<legacy_t>(view, is_copy);
}

py::tuple dlpack_device(arena_buffer_t const &view) {
    view.check();
    return py::make_tuple(static_cast<int>(kDLCPU), 0);
}

} // namespace uform::python
