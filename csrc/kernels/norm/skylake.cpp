#if defined(__x86_64__)
#include "../simd/skylake.h"

#include "norm_simd.h"

namespace uform {

void normalize_skylake(normalize_t const &arguments) noexcept { normalize<skylake_t>(arguments); }

void unit_skylake(float *rows, size_t count, size_t columns) noexcept { unit<skylake_t>(rows, count, columns); }

} // namespace uform

#include "../simd/end.h"
#endif
