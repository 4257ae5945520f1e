#if defined(__x86_64__)
#include "../simd/haswell.h"

#include "norm_simd.h"

namespace uform {

void normalize_haswell(normalize_t const &arguments) noexcept { normalize<haswell_t>(arguments); }

void unit_haswell(float *rows, size_t count, size_t columns) noexcept { unit<haswell_t>(rows, count, columns); }

} // namespace uform

#include "../simd/end.h"
#endif
