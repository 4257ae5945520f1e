/** Pictures and recordings in memory, which calls read where they lie. */
#pragma once
#include <pybind11/pybind11.h>
#include <vector>

#include "uform/encode.h"

#include "buffers.h"

namespace uform::python {

/** Pictures: a sequence of [height, width, 3] buffers of bytes, or one [count, height, width, 3]. Keeps them. */
class pixels_input_t {
  public:
    /** SHAPE_MISMATCH and UNSUPPORTED_LAYOUT name the item. */
    explicit pixels_input_t(py::handle object);

    std::vector<uform_pixels_t> const &items() const noexcept { return items_; }

  private:
    std::vector<buffer_t> buffers_;
    std::vector<uform_pixels_t> items_;
};

/** Recordings: a sequence of 1-D buffers of float32, or one [count, samples]. Keeps them. */
class samples_input_t {
  public:
    /** SHAPE_MISMATCH and UNSUPPORTED_LAYOUT name the item. */
    explicit samples_input_t(py::handle object);

    std::vector<uform_samples_t> const &items() const noexcept { return items_; }

  private:
    std::vector<buffer_t> buffers_;
    std::vector<uform_samples_t> items_;
};

} // namespace uform::python
