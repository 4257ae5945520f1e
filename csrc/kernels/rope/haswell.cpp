#if defined(__x86_64__)
#include "../simd/haswell.h"

#include "rope_simd.h"

namespace uform {

void rope_haswell(rope_t const &arguments) noexcept { rope<haswell_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
