/** Why the calling thread's last call failed. */
#pragma once
#include "uform/types.h"

namespace uform {

/**
 *  Notes a failure on the calling thread and returns its status, so that a check reads `return fail(...)`.
 *  `format` is printf's; a message that is too long is cut.
 */
[[gnu::format(printf, 3, 4)]] uform_status_t fail(uform_status_t status, size_t item, char const *format, ...) noexcept;

/** What `fail` noted last on the calling thread. */
uform_failure_t const &last_failure() noexcept;

} // namespace uform
