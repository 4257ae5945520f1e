#if defined(__x86_64__)
#include "../simd/skylake.h"

#include "score_simd.h"

namespace uform {

void score_f32_skylake(score_t const &arguments) noexcept { score_f32<skylake_t, 12, 2, score_lanes_k>(arguments); }

void score_f32_half_skylake(score_t const &arguments) noexcept {
    score_f32<skylake_t, 12, 1, score_half_lanes_k>(arguments);
}

} // namespace uform

#include "../simd/end.h"
#endif
