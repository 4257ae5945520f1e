/** Views as DLPack capsules: how torch, NumPy, JAX and others take an arena's memory without a copy. */
#pragma once
#include "views.h"

namespace uform::python {

/**
 *  `__dlpack__` of the array API 2024.12: a capsule "dltensor_versioned", or "dltensor" for a consumer without a
 *  `max_version` from (1, 0) on. It pins the arena until the consumer, on whatever thread, deletes what it took over.
 *
 *  BufferError: a device that is not the host; offsets, which are read-only, for a consumer that cannot be told so.
 */
py::object export_dlpack(arena_buffer_t const &view, py::handle stream, py::handle max_version, py::handle dl_device,
                         py::handle copy);

/** `__dlpack_device__`: the host. */
py::tuple dlpack_device(arena_buffer_t const &view);

} // namespace uform::python
