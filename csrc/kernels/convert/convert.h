/** F32 results become the scalars that the caller asked for. Bytes are the limit: one version, for any machine. */
#pragma once
#include <cstddef>

#include "uform/types.h"

namespace uform {

/** `count` scalars. Rounds to nearest even; E4M3 saturates. F32 may be converted in place (nothing happens then). */
void convert(float const *from, size_t count, uform_scalar_t scalar, void *to) noexcept;

} // namespace uform
