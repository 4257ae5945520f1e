#include "media_source.h"

#include <algorithm>
#include <cstdio>

namespace uform {

uform_status_t media_source_t::refuse_item(size_t item, fault_t const &fault) const noexcept {
    bool const can_skip = fault.status == uform_malformed_k || fault.status == uform_unsupported_layout_k;
    if (!faults || !can_skip) return fail(fault.status, item, "%s: item %zu: %s", name, item, fault.message);
    faults[item].status = fault.status;
    std::snprintf(faults[item].message, sizeof(faults[item].message), "%s", fault.message);
    return uform_success_k;
}

void patch_cutter_t::cut(size_t first, size_t count, float *out, size_t stride) const noexcept {
    size_t const line = 3 * side, row_bytes = columns * line, picture_bytes = rows * side * row_bytes;
    for (size_t patch = first; patch != first + count; ++patch, out += stride) {
        size_t const column = patch % columns, row = patch / columns % rows, time = patch / columns / rows;
        float *to = out;
        for (size_t frame = 0; frame != frames; ++frame) {
            size_t const picture = std::min(time * frames + frame, pictures - 1);
            uint8_t const *from = rgb + picture * picture_bytes + row * side * row_bytes + column * line;
            for (size_t y = 0; y != side; ++y, from += row_bytes, to += line)
                for (size_t x = 0; x != line; ++x) to[x] = static_cast<float>(from[x]) / 127.5f - 1.f;
        }
    }
}

} // namespace uform
