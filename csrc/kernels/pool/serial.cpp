#include "../simd/serial.h"

#include "pool_simd.h"

namespace uform {

void pool_serial(pooling_t const &arguments) noexcept { pool<serial_t>(arguments); }

} // namespace uform
