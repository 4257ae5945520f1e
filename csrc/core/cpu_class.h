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

} // namespace uform
