/**
 *  The product that linear layers and attention are made of: up to `product_rows` rows of activations times a tile, a
 *  pair of neighbouring panels of a packed matrix (packed.h).
 *
 *      out[row][n] = sum over k of activations[row][k] * packed(n, k)      n < 32, k < 2 * pairs
 *
 *  Each class defines, in a file of this folder, a struct that adds to its vectors
 *  - `product_rows`: rows of a call at the most, and `next_rows(left)`: how many to take next of what is left;
 *  - `product(rows, activations, activation_stride, panels, panel_stride, pairs, out, out_stride)`: `panels` points to
 *    the first line wanted of the first panel, `panel_stride` is the distance to the second one; strides are in
 *    elements. Lines are aligned to 64 bytes. AMX may read (not use) activations of up to `product_rows` rows: buffers
 *    of activations end with room for that;
 *  - `pair_step`: `pairs` is a multiple of it. Packing pads to such;
 *  - `decoded_t`, of which `panels` may be, too: what E4M3 weights are decoded to, BF16 or F32, which has a line's even
 *    columns before its odd ones; and `decoded_unit`, what a decoded 1 stands for.
 *
 *  F32 accumulation in one order of k for each output, whatever `rows` is. F32 classes are within 1e-6 of sum(|a * b|)
 *  of the exact sum, BF16 ones within 1e-5, which includes the products' own rounding.
 *  Work: 64 * rows * 2 * pairs FLOP; bytes: a line of 128 a pair, and the activations once.
 */
#pragma once
#include <cstddef>

namespace uform {
namespace {

/** Rows to take next of `left`, at most `most`, so that none of the calls has far fewer than the others. */
constexpr size_t even_rows(size_t left, size_t most) noexcept {
    size_t const calls = (left + most - 1) / most;
    return (left + calls - 1) / calls;
}

} // namespace
} // namespace uform
