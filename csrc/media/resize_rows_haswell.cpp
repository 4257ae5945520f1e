#if defined(__x86_64__)
#include "media/resize_rows.h"

#define UFORM_TARGET "avx2"
#include "kernels/simd/begin.h"

#include "media/resize_rows_simd.h"

namespace uform {

constinit resize_rows_t const resize_rows_haswell = {add, add_twice, columns, round};

} // namespace uform

#include "kernels/simd/end.h"
#endif
