#if defined(__x86_64__)
#include "../simd/skylake.h"

#include "rope_simd.h"

namespace uform {

void rope_skylake(rope_t const &arguments) noexcept { rope<skylake_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
