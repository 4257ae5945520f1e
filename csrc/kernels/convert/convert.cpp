#include "convert.h"

#include <cstring>

#include "../scalars.h"

namespace uform {

void convert(float const *from, size_t count, uform_scalar_t scalar, void *to) noexcept {
    if (scalar == uform_bf16_k) {
        auto out = static_cast<bf16_t *>(to);
        for (size_t i = 0; i != count; ++i) out[i] = f32_to_bf16(from[i]);
    }
    else if (scalar == uform_e4m3_k) {
        auto out = static_cast<e4m3_t *>(to);
        for (size_t i = 0; i != count; ++i) out[i] = f32_to_e4m3(from[i]);
    }
    else if (from != to) std::memcpy(to, from, count * sizeof(float));
}

} // namespace uform
