/** SAPPHIRE: the vectors of GENOA, and AMX. A file of this class includes it after all others, and `simd/end.h` last.
 */
#pragma once
#define UFORM_TARGET "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl,avx512vbmi,avx512bf16,amx-tile,amx-bf16"

#include "genoa.h"

namespace uform {
namespace {

struct sapphire_t : genoa_t {
    /**
     *  a / b for b from 1 to 2^127, to a relative 2e-7: a vector's division takes 16 cycles, this takes 3. Only Intel
     *  makes this class, and its first guess of a reciprocal has one definition, so that bits stay the same.
     */
    static vector_t divide(vector_t a, vector_t b) noexcept {
        vector_t const guess = _mm512_rcp14_ps(b);
        vector_t const error = _mm512_fnmadd_ps(b, guess, _mm512_set1_ps(1.f));
        return _mm512_mul_ps(a, _mm512_fmadd_ps(guess, error, guess));
    }
};

} // namespace
} // namespace uform
