/** SAPPHIRE: the vectors of GENOA, and AMX. A file of this class includes it after all others, and `simd/end.h` last.
 */
#pragma once
#define UFORM_TARGET "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,amx-tile,amx-bf16"

#include "genoa.h"
