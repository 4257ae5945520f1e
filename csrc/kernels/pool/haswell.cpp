#if defined(__x86_64__)
#include "../simd/haswell.h"

#include "pool_simd.h"

namespace uform {

void pool_haswell(pooling_t const &arguments) noexcept { pool<haswell_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
