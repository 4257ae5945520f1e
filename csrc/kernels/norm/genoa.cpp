#if defined(__x86_64__)
#include "../simd/genoa.h"

#include "norm_simd.h"

namespace uform {

void normalize_genoa(normalize_t const &arguments) noexcept { normalize<genoa_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
