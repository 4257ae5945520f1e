#include "../simd/serial.h"

#include "rope_simd.h"

namespace uform {

void rope_serial(rope_t const &arguments) noexcept { rope<serial_t>(arguments); }

} // namespace uform
