/** Checks of lent tapes. */
#pragma once
#include "uform/types.h"

namespace uform {

/** SUCCESS or INVALID_ARGUMENT, noted with the tape's `name` and the item at fault. Reads the offsets, not the data. */
uform_status_t check_tape(uform_tape_t const &tape, char const *name) noexcept;

} // namespace uform
