#include "../simd/serial.h"

#include "norm_simd.h"

namespace uform {

void normalize_serial(normalize_t const &arguments) noexcept { normalize<serial_t>(arguments); }

void unit_serial(float *rows, size_t count, size_t columns) noexcept { unit<serial_t>(rows, count, columns); }

} // namespace uform
