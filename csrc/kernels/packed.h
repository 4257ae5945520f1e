/**
 *  A matrix [rows, columns] as every class's product reads it: the weights of a linear layer, or the keys or values
 *  of an attention head.
 *
 *  Rows (the product's output columns) stand in panels of 16. A panel holds, for each pair of neighbouring columns
 *  (the product's inner dimension), one line of 16 pairs: element (row, column) is number
 *      ((row / 16 * padded_columns / 2 + column / 2) * 16 + row % 16) * 2 + column % 2
 *  of the data. That is a line of 64 bytes in BF16, as VDPBF16PS and TDPBF16PS want it (a tile is 1 KiB in a row), and
 *  classes without them split a line into two vectors of F32 by a shift and a mask.
 *  Rows are padded to 32 and columns to 32, with zeros.
 *  E4M3 has the same order of elements, a byte each, and one F32 scale a row.
 */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** Upper half of a binary32. */
using bf16_t = uint16_t;
/** OCP E4M3. */
using e4m3_t = uint8_t;

constexpr size_t panel_rows_k = 16;
/** Rows of a pair of panels: products work on ranges of these. */
constexpr size_t tile_rows_k = 32;
constexpr size_t padding_columns_k = 32;

constexpr size_t round_up(size_t value, size_t multiple) noexcept {
    return (value + multiple - 1) / multiple * multiple;
}

struct packed_t {
    bf16_t const *data = nullptr;      /**< BF16 elements, or nullptr. Aligned to 64 bytes. */
    e4m3_t const *data_e4m3 = nullptr; /**< E4M3 elements, or nullptr. Aligned to 64 bytes. */
    float const *scales = nullptr;     /**< E4M3: a factor a padded row. */
    size_t rows = 0;
    size_t columns = 0;

    size_t padded_rows() const noexcept { return round_up(rows, tile_rows_k); }
    size_t padded_columns() const noexcept { return round_up(columns, padding_columns_k); }
    size_t tiles() const noexcept { return padded_rows() / tile_rows_k; }
    explicit operator bool() const noexcept { return rows != 0; }
};

} // namespace uform
