/** Faults, put into words. */
#pragma once
#include <cstdarg>
#include <cstdio>

#include "media/codecs.h"

namespace uform {

/** Notes why an item cannot be decoded and returns the status, so that a check reads `return refuse(...)`. */
[[gnu::format(printf, 3, 4)]] inline uform_status_t refuse(fault_t &fault, uform_status_t status, char const *format,
                                                           ...) noexcept {
    fault.status = status;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(fault.message, sizeof(fault.message), format, arguments);
    va_end(arguments);
    return status;
}

} // namespace uform
