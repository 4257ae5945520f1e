#if defined(__x86_64__)
#include "../product/genoa.h"

#include "linear_simd.h"

namespace uform {

void linear_genoa(linear_t const &arguments) noexcept { linear<genoa_product_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
