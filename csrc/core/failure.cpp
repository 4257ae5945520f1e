#include "failure.h"

#include <cstdarg>
#include <cstdio>

namespace uform {
namespace {
constinit thread_local uform_failure_t thread_failure {uform_success_k, UFORM_NO_ITEM, {}};
} // namespace

uform_status_t fail(uform_status_t status, size_t item, char const *format, ...) noexcept {
    thread_failure.status = status;
    thread_failure.item = item;
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(thread_failure.message, sizeof(thread_failure.message), format, arguments);
    va_end(arguments);
    return status;
}

uform_failure_t const &last_failure() noexcept { return thread_failure; }

} // namespace uform

void uform_last_failure(uform_failure_t *failure) {
    if (failure) *failure = uform::last_failure();
}
