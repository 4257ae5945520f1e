#if defined(__x86_64__)
#include "../simd/skylake.h"

#include "pool_simd.h"

namespace uform {

void pool_skylake(pooling_t const &arguments) noexcept { pool<skylake_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
