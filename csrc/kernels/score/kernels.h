/** The score kernels of a CPU class. */
#pragma once
#include "uform/types.h"

#include "score.h"

namespace uform {

using score_kernel_t = void (*)(score_t const &) noexcept;

struct score_kernels_t {
    score_kernel_t f32;
    score_kernel_t f32_half;
    score_kernel_t f32_narrow;
    score_kernel_t bf16; /**< nullptr: rows and queries are widened to F32. */
    score_kernel_t i8;
    score_kernel_t i8_one;
    score_kernel_t bits;
    score_kernel_t bits_one;
    bool (*screen)(score_screen_t const &) noexcept; /**< nullptr: there is none. */
};

/** Those of SERIAL for a class that this build has none for. */
score_kernels_t const &score_kernels_of(uform_cpu_class_t cpu_class) noexcept;

} // namespace uform
