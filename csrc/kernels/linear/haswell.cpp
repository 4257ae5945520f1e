#if defined(__x86_64__)
#include "../product/haswell.h"

#include "linear_simd.h"

namespace uform {

void linear_haswell(linear_t const &arguments) noexcept { linear<haswell_product_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
