#if defined(__x86_64__)
#include "../simd/genoa.h"

#include "rope_simd.h"

namespace uform {

void rope_genoa(rope_t const &arguments) noexcept { rope<genoa_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
