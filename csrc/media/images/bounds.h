/** What a picture may take, checked before memory is asked for. */
#pragma once
#include "media/fault.h"

namespace uform {

/** MALFORMED for a picture without pixels, or with too many. */
inline uform_status_t check_pixels(uint64_t width, uint64_t height, limits_t const &limits, fault_t &fault) noexcept {
    auto const columns = static_cast<unsigned long long>(width), rows = static_cast<unsigned long long>(height);
    if (!width || !height) return refuse(fault, uform_malformed_k, "a picture of %llu x %llu pixels", columns, rows);
    if (width > limits.pixels / height)
        return refuse(fault, uform_malformed_k, "a picture of %llu x %llu pixels, over the limit of %llu", columns,
                      rows, static_cast<unsigned long long>(limits.pixels));
    return uform_success_k;
}

/** MALFORMED where decoding would take too much memory. */
inline uform_status_t check_bytes(uint64_t bytes, limits_t const &limits, fault_t &fault) noexcept {
    if (bytes <= limits.bytes) return uform_success_k;
    return refuse(fault, uform_malformed_k, "decoding takes %llu bytes of memory, over the limit of %llu",
                  static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(limits.bytes));
}

} // namespace uform
