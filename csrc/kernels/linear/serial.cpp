
#include "../product/serial.h"

#include "linear_simd.h"

namespace uform {

void linear_serial(linear_t const &arguments) noexcept { linear<serial_product_t>(arguments); }

} // namespace uform
