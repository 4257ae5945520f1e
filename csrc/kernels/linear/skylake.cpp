#if defined(__x86_64__)
#include "../product/skylake.h"

#include "linear_simd.h"

namespace uform {

void linear_skylake(linear_t const &arguments) noexcept { linear<skylake_product_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
