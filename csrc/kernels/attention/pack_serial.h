/**
 *  Packs a head's keys and values for products, element by element, for classes without a faster way. Internal linkage:
 *  see simd/avx512.h.
 */
#pragma once
#include "../packed.h"
#include "../scalars.h"

namespace uform {
namespace {

/** Rows of keys become panels: [padded tokens, dimension], zeros behind the last token. */
inline void pack_keys_serial(float const *keys, size_t stride, size_t count, size_t dimension, bf16_t *out) noexcept {
    size_t const padded = round_up(count, tile_rows_k);
    for (size_t key = 0; key != padded; ++key) {
        bf16_t *column = out + key / panel_rows_k * dimension * panel_rows_k + key % panel_rows_k * 2;
        for (size_t pair = 0; pair != dimension / 2; ++pair, column += 2 * panel_rows_k) {
            column[0] = key < count ? f32_to_bf16(keys[key * stride + 2 * pair]) : bf16_t(0);
            column[1] = key < count ? f32_to_bf16(keys[key * stride + 2 * pair + 1]) : bf16_t(0);
        }
    }
}

/** Columns of values become panels: [dimension, padded tokens]. */
inline void pack_values_serial(float const *values, size_t stride, size_t count, size_t dimension,
                               bf16_t *out) noexcept {
    size_t const padded = round_up(count, tile_rows_k);
    for (size_t panel = 0; panel != dimension / panel_rows_k; ++panel)
        for (size_t key = 0; key != padded; ++key)
            for (size_t n = 0; n != panel_rows_k; ++n) {
                float value = key < count ? values[key * stride + panel * panel_rows_k + n] : 0.f;
                out[(panel * padded / 2 + key / 2) * 2 * panel_rows_k + 2 * n + key % 2] = f32_to_bf16(value);
            }
}

} // namespace
} // namespace uform
