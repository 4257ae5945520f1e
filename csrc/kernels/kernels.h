/**
 *  The kernels of a CPU class, behind one table. To add a kernel for a class: write its file in the family's folder,
 *  declare its entry point in the family's header, name it in `kernels.cpp`.
 */
#pragma once
#include <cstddef>

#include "uform/types.h"

#include "attention/attention.h"
#include "linear/linear.h"
#include "norm/norm.h"
#include "pool/pool.h"
#include "rope/rope.h"

namespace uform {

struct kernels_t {
    uform_cpu_class_t cpu_class;
    uform_scalar_t activations; /**< What products multiply by weights: F32 or BF16. */
    /** Tokens that amortise reading the weights, while the activations stay in a core's L2. Measured. */
    size_t group_tokens;
    /** Tokens of one head's sums that stay in L1 between the product and its norm and rotation. */
    size_t head_tokens;
    void (*linear)(linear_t const &) noexcept;
    void (*attention)(attention_t const &) noexcept;
    void (*normalize)(normalize_t const &) noexcept;
    void (*unit)(float *rows, size_t count, size_t columns) noexcept;
    void (*rope)(rope_t const &) noexcept;
    void (*pool)(pooling_t const &) noexcept;

    size_t activation_size() const noexcept { return activations == uform_bf16_k ? sizeof(bf16_t) : sizeof(float); }
};

/** The kernels of a class that this machine can run; those of SERIAL for one that this build has none for. */
kernels_t const &kernels_of(uform_cpu_class_t cpu_class) noexcept;

} // namespace uform
