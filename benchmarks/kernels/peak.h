/** What a core can do at the most, measured with nothing but multiply-adds on registers. */
#pragma once
#include "uform/types.h"

namespace uform {

/** FLOP/s of the class's widest multiply-add, on the calling thread; 0 where the class has no vectors. */
double peak(uform_cpu_class_t cpu_class) noexcept;

} // namespace uform
