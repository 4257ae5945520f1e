/** Instruction sets of this machine, found once. */
#pragma once
#include "uform/types.h"

namespace uform {

/**
 *  SUCCESS where `cpu_class` is zero or can run here; else UNKNOWN_KIND or UNSUPPORTED, noted as the thread's failure.
 *
 *  For tests alone: the environment variable `UFORM_ASSUME_CPU_CLASS`, read once, names a class that counts as
 *  supported whatever the machine says, since an emulator answers for its instructions. It never changes what is
 *  derived.
 */
uform_status_t check_cpu_class(uform_cpu_class_t const &cpu_class) noexcept;

/**
 *  Whether this machine multiplies bytes and counts bits in vectors, with AVX512-VNNI and AVX512-VPOPCNTDQ, as Ice Lake
 *  does. It is no class of its own: sums of integers are the same in all of them.
 */
bool has_integer_vectors() noexcept;

} // namespace uform
