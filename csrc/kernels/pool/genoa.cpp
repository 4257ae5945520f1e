#if defined(__x86_64__)
#include "../simd/genoa.h"

#include "pool_simd.h"

namespace uform {

void pool_genoa(pooling_t const &arguments) noexcept { pool<genoa_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
