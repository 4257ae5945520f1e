#include "weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../core/failure.h"
#include "../kernels/scalars.h"

namespace uform {
namespace {

/** A tile of rows of a matrix on its way: as stored, then as F32. */
struct tile_scratch_t {
    float *values;
    std::byte *raw;

    tile_scratch_t(std::byte *scratch, size_t columns) noexcept
        : values(reinterpret_cast<float *>(scratch)),
          raw(scratch + tile_rows_k * columns * sizeof(float)) {}
};

/** Number of the element in a packed matrix: see packed.h. */
size_t packed_index(size_t row, size_t column, size_t padded_columns) noexcept {
    return ((row / panel_rows_k * padded_columns / 2 + column / 2) * panel_rows_k + row % panel_rows_k) * 2 + column % 2;
}

/** One row of values into its places. The memory around it is zero already. */
void pack_row(piece_t const &piece, size_t row, float const *values) noexcept {
    size_t const padded = round_up(piece.columns, padding_columns_k);
    if (piece.data) {
        for (size_t column = 0; column != piece.columns; ++column)
            piece.data[packed_index(row, column, padded)] = f32_to_bf16(values[column]);
        return;
    }
    float largest = 0;
    for (size_t column = 0; column != piece.columns; ++column) largest = std::max(largest, std::fabs(values[column]));
    float const scale = largest / 448.f;
    piece.scales[row] = scale;
    if (scale == 0.f) return;
    for (size_t column = 0; column != piece.columns; ++column)
        piece.data_e4m3[packed_index(row, column, padded)] = f32_to_e4m3(values[column] / scale);
}

/** Rows of the tensor that become the packed rows from `row` on: 16 of one half of a gated pair, or all in order. */
size_t stored_row(piece_t const &piece, size_t row) noexcept {
    if (piece.layout != layout_t::gated_k) return row;
    size_t const panel = row / panel_rows_k;
    return panel / 2 * panel_rows_k + row % panel_rows_k + (panel % 2 ? piece.rows / 2 : 0);
}

uform_status_t load_packed(rows_reader_t const &reader, piece_t const &piece, std::byte *scratch) noexcept {
    tile_scratch_t const tile(scratch, piece.columns);
    for (size_t row = 0; row < piece.rows; row += panel_rows_k) {
        size_t const count = std::min(panel_rows_k, piece.rows - row);
        if (uform_status_t const status =
                reader.read(stored_row(piece, row), count, piece.columns, tile.raw, tile.values))
            return status;
        for (size_t i = 0; i != count; ++i) pack_row(piece, row + i, tile.values + i * piece.columns);
    }
    return uform_success_k;
}

} // namespace

uform_status_t rows_reader_t::read(size_t row, size_t count, size_t columns, std::byte *raw,
                                   float *out) const noexcept {
    bool const wide = tensor_.scalar == "F32";
    size_t const elements = count * columns, bytes = elements * (wide ? sizeof(float) : sizeof(bf16_t));
    uint64_t const offset = tensor_.begin + row * columns * (wide ? sizeof(float) : sizeof(bf16_t));
    if (uform_status_t const status = source_.read(offset, {raw, bytes})) return status;
    bool finite = true;
    for (size_t i = 0; i != elements; ++i) {
        if (wide) std::memcpy(out + i, raw + i * sizeof(float), sizeof(float));
        else {
            bf16_t half;
            std::memcpy(&half, raw + i * sizeof(half), sizeof(half));
            out[i] = bf16_to_f32(half);
        }
        finite &= std::isfinite(out[i]);
    }
    if (!finite)
        return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: tensor `%.100s` has a number that is not finite",
                    name_.c_str());
    return uform_success_k;
}

size_t piece_scratch(piece_t const &piece) noexcept {
    return tile_rows_k * piece.columns * 2 * sizeof(float);
}

uform_status_t load_piece(source_t const &source, safetensors_t const &header, piece_t const &piece,
                          float const *modality, std::byte *scratch) noexcept {
    rows_reader_t const reader(source, piece.name, header.tensors.find(piece.name)->second);
    if (piece.layout == layout_t::packed_k || piece.layout == layout_t::gated_k)
        return load_packed(reader, piece, scratch);
    for (size_t row = 0; row < piece.rows; row += tile_rows_k) {
        size_t const count = std::min(tile_rows_k, piece.rows - row);
        float *out = piece.plain + row * piece.columns;
        if (uform_status_t const status = reader.read(row, count, piece.columns, scratch, out)) return status;
        if (piece.layout == layout_t::embeds_k)
            for (size_t i = 0; i != count * piece.columns; ++i) out[i] += modality[i % piece.columns];
    }
    return uform_success_k;
}

} // namespace uform
