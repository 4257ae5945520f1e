#include "weights.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "../core/failure.h"
#include "../kernels/scalars.h"

namespace uform {
namespace {

constexpr float e4m3_largest_k = 448.f;

uform_status_t not_finite(piece_t const &piece) noexcept {
    return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: tensor `%.100s` has a number that is not finite",
                piece.name.c_str());
}

/** `count` rows of a BF16 tensor as they are stored. */
uform_status_t read_rows(source_t const &source, tensor_t const &tensor, piece_t const &piece, size_t row, size_t count,
                         bf16_t *out) noexcept {
    std::span<bf16_t> const numbers(out, count * piece.columns);
    uint64_t const offset = tensor.begin + row * piece.columns * sizeof(bf16_t);
    if (uform_status_t const status = source.read(offset, std::as_writable_bytes(numbers))) return status;
    bool finite = true;
    for (bf16_t number : numbers) finite &= (number & 0x7f80u) != 0x7f80u;
    return finite ? uform_success_k : not_finite(piece);
}

uform_status_t load_f32(source_t const &source, tensor_t const &tensor, piece_t const &piece) noexcept {
    std::span<float> const numbers(piece.plain, piece.rows * piece.columns);
    if (uform_status_t const status = source.read(tensor.begin, std::as_writable_bytes(numbers))) return status;
    for (float number : numbers)
        if (!std::isfinite(number)) return not_finite(piece);
    return uform_success_k;
}

uform_status_t load_plain(source_t const &source, tensor_t const &tensor, piece_t const &piece, float const *modality,
                          bf16_t *stored) noexcept {
    for (size_t row = 0; row < piece.rows; row += panel_rows_k) {
        size_t const count = std::min(panel_rows_k, piece.rows - row);
        if (uform_status_t const status = read_rows(source, tensor, piece, row, count, stored)) return status;
        float *const out = piece.plain + row * piece.columns;
        for (size_t i = 0; i != count * piece.columns; ++i)
            out[i] = bf16_to_f32(stored[i]) + (modality ? modality[i % piece.columns] : 0.f);
    }
    return uform_success_k;
}

/** Number of an element in its panel: see packed.h. */
constexpr size_t panel_index(size_t row, size_t column) noexcept {
    return (column / 2 * panel_rows_k + row) * 2 + column % 2;
}

void pack_bf16(bf16_t const *stored, size_t rows, size_t columns, bf16_t *panel) noexcept {
    for (size_t column = 0; column != columns; ++column)
        for (size_t row = 0; row != rows; ++row) panel[panel_index(row, column)] = stored[row * columns + column];
}

/** `scales`: one for each row. A row of zeros has the scale 0. */
void pack_e4m3(bf16_t const *stored, size_t rows, size_t columns, e4m3_t *panel, float *scales) noexcept {
    for (size_t row = 0; row != rows; ++row, stored += columns) {
        float largest = 0;
        for (size_t column = 0; column != columns; ++column)
            largest = std::max(largest, std::fabs(bf16_to_f32(stored[column])));
        float const scale = scales[row] = largest / e4m3_largest_k;
        for (size_t column = 0; column != columns; ++column)
            panel[panel_index(row, column)] = scale > 0 ? f32_to_e4m3(bf16_to_f32(stored[column]) / scale) : 0;
    }
}

/** The tensor's row that a panel begins with. */
size_t stored_row(piece_t const &piece, size_t panel) noexcept {
    if (piece.placement != placement_t::gated_k) return panel * panel_rows_k;
    return panel / 2 * panel_rows_k + (panel % 2 ? piece.rows / 2 : 0);
}

uform_status_t load_packed(source_t const &source, tensor_t const &tensor, piece_t const &piece,
                           bf16_t *stored) noexcept {
    size_t const panel_elements = panel_rows_k * round_up(piece.columns, padding_columns_k);
    size_t const panels = round_up(piece.rows, tile_rows_k) / panel_rows_k;
    for (size_t panel = 0; panel != panels; ++panel) {
        size_t const row = panel * panel_rows_k,
                     count = row < piece.rows ? std::min(panel_rows_k, piece.rows - row) : 0;
        bool const is_padded = count * piece.columns != panel_elements;
        if (uform_status_t const status = read_rows(source, tensor, piece, stored_row(piece, panel), count, stored))
            return status;
        if (piece.data) {
            bf16_t *const out = piece.data + panel * panel_elements;
            if (is_padded) std::memset(out, 0, panel_elements * sizeof(*out));
            pack_bf16(stored, count, piece.columns, out);
        }
        else {
            e4m3_t *const out = piece.data_e4m3 + panel * panel_elements;
            if (is_padded) std::memset(out, 0, panel_elements * sizeof(*out));
            std::fill_n(piece.scales + row, panel_rows_k, 0.f);
            pack_e4m3(stored, count, piece.columns, out, piece.scales + row);
        }
    }
    return uform_success_k;
}

} // namespace

size_t piece_scratch(piece_t const &piece) noexcept {
    return std::min(piece.rows, panel_rows_k) * piece.columns * sizeof(bf16_t);
}

uform_status_t load_piece(source_t const &source, tensor_t const &tensor, piece_t const &piece, float const *modality,
                          std::byte *scratch) noexcept {
    bf16_t *const stored = reinterpret_cast<bf16_t *>(scratch);
    switch (piece.placement) {
    case placement_t::packed_k:
    case placement_t::gated_k: return load_packed(source, tensor, piece, stored);
    case placement_t::embeds_k: return load_plain(source, tensor, piece, modality, stored);
    case placement_t::plain_k: break;
    }
    if (tensor.scalar == "F32") return load_f32(source, tensor, piece);
    return load_plain(source, tensor, piece, nullptr, stored);
}

} // namespace uform
