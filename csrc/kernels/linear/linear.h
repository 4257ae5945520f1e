/**
 *  Linear layers: activations [rows, columns] times the transpose of a packed matrix [outputs, columns], and what is
 *  done with the sums while they are in L1.
 *
 *  Tolerance: see product/product.h; SiLU adds a relative 1e-6, or 1e-4 and their rounding where activations are BF16.
 *  Work: 2 * rows * columns FLOP an output; each weight is read once a call, activations once a tile of 32 outputs.
 */
#pragma once
#include <cstddef>

#include "../packed.h"

namespace uform {

enum class epilogue_t {
    store_k,    /**< out[row][n] = sum. F32. */
    add_k,      /**< out[row][n] += sum. F32. The residual. */
    activate_k, /**< out[row][n / 2] = SiLU(gate) * up, of matrices packed with 16 gates and 16 ups by turns. */
};

struct linear_t {
    void const *activations = nullptr; /**< F32 or BF16, as the class has it. */
    size_t activation_stride = 0;      /**< Elements from row to row. */
    size_t rows = 0;
    packed_t const *weights = nullptr;
    size_t tile_begin = 0; /**< Range of tiles of 32 outputs to compute. */
    size_t tile_end = 0;
    epilogue_t epilogue = epilogue_t::store_k;
    void *out = nullptr;     /**< First output of `tile_begin`; `store` and `add`: F32, `activate`: activations. */
    size_t out_stride = 0;   /**< Elements from row to row. */
    void *decoded = nullptr; /**< E4M3 weights alone: room for a tile in F32, 32 * padded columns, aligned to 64. */
};

void linear_serial(linear_t const &arguments) noexcept;
void linear_haswell(linear_t const &arguments) noexcept;
void linear_skylake(linear_t const &arguments) noexcept;
void linear_genoa(linear_t const &arguments) noexcept;
void linear_sapphire(linear_t const &arguments) noexcept;

} // namespace uform
