/** Products in plain C++: the reference for the other classes. */
#pragma once
#include "../scalars.h"
#include "../simd/serial.h"

namespace uform {
namespace {

struct serial_product_t : serial_t {
    static constexpr size_t product_rows = 1;
    static constexpr size_t pair_step = 1;
    using decoded_t = bf16_t;
    static constexpr float decoded_unit = 1;

    static size_t next_rows(size_t) noexcept { return 1; }

    static void product(size_t, float const *activations, size_t, bf16_t const *panels, size_t panel_stride,
                        size_t pairs, float *out, size_t) noexcept {
        float sums[tile_rows_k] = {};
        for (size_t pair = 0; pair != pairs; ++pair)
            for (size_t half = 0; half != 2; ++half) {
                bf16_t const *line = panels + half * panel_stride + pair * 32;
                for (size_t n = 0; n != panel_rows_k; ++n) {
                    float &sum = sums[half * panel_rows_k + n];
                    sum += activations[2 * pair] * bf16_to_f32(line[2 * n]);
                    sum += activations[2 * pair + 1] * bf16_to_f32(line[2 * n + 1]);
                }
            }
        for (size_t n = 0; n != tile_rows_k; ++n) out[n] = sums[n];
    }

    static void decode(e4m3_t const *codes, size_t count, bf16_t *out) noexcept {
        for (size_t index = 0; index != count; ++index) out[index] = f32_to_bf16(e4m3_to_f32(codes[index]));
    }
};

} // namespace
} // namespace uform
