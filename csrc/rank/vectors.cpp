#include "vectors.h"

#include <cstring>

#include "../core/failure.h"
#include "../core/kind.h"
#include "../kernels/packed.h"
#include "../kernels/scalars.h"

namespace uform {
namespace {

constexpr size_t most_width_k = 65536;

} // namespace

size_t vector_bytes(uform_vectors_t const &vectors) noexcept {
    switch (vectors.kind) {
    case uform_vectors_f32_k: return vectors.width * sizeof(float);
    case uform_vectors_bf16_k: return vectors.width * sizeof(bf16_t);
    case uform_vectors_i8_k: return vectors.width;
    case uform_vectors_bits_k: return vectors.width / 8;
    }
    return 0;
}

uform_status_t check_vectors(uform_vectors_t &vectors, char const *name) noexcept {
    constexpr uform_status_t invalid_k = uform_invalid_argument_k;
    int const kind = number_of(vectors.kind);
    if (!uform_vectors_kind_name(kind))
        return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "%s: %d is no kind of vectors", name, kind);
    if (!vectors.data && vectors.count)
        return fail(invalid_k, UFORM_NO_ITEM, "%s: data is NULL, but there are %zu rows", name, vectors.count);
    if (!vectors.width || vectors.width > most_width_k)
        return fail(invalid_k, UFORM_NO_ITEM, "%s: a width of %zu is not from 1 to %zu", name, vectors.width,
                    most_width_k);
    if (vectors.kind == uform_vectors_bits_k && vectors.width % 8)
        return fail(invalid_k, UFORM_NO_ITEM, "%s: a width of %zu bits is no multiple of 8", name, vectors.width);
    size_t const bytes = vector_bytes(vectors), size = kind == uform_vectors_f32_k    ? 4
                                                       : kind == uform_vectors_bf16_k ? 2
                                                                                      : 1;
    if (!vectors.row_bytes) vectors.row_bytes = bytes;
    if (vectors.row_bytes < bytes || vectors.row_bytes % size)
        return fail(uform_unsupported_layout_k, UFORM_NO_ITEM,
                    "%s: rows of %zu bytes stand %zu bytes apart: not less, and whole numbers apart, is needed", name,
                    bytes, vectors.row_bytes);
    return uform_success_k;
}

uform_status_t check_pair(uform_vectors_t const &queries, uform_vectors_t const &others, char const *name) noexcept {
    if (queries.kind != others.kind)
        return fail(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: %s, but the queries are %s", name,
                    uform_vectors_kind_name(others.kind), uform_vectors_kind_name(queries.kind));
    if (queries.width != others.width)
        return fail(uform_shape_mismatch_k, UFORM_NO_ITEM, "%s: rows of %zu numbers, but the queries have %zu", name,
                    others.width, queries.width);
    return uform_success_k;
}

uform_status_t check_offsets(size_t const *offsets, size_t count, size_t rows, char const *name) noexcept {
    constexpr uform_status_t invalid_k = uform_invalid_argument_k;
    if (!offsets) {
        if (!count) return uform_success_k;
        return fail(invalid_k, UFORM_NO_ITEM, "%s: NULL, but there are %zu items", name, count);
    }
    if (offsets[0]) return fail(invalid_k, count ? 0 : UFORM_NO_ITEM, "%s: the first is %zu, not 0", name, offsets[0]);
    for (size_t item = 0; item != count; ++item) {
        if (offsets[item + 1] > SIZE_MAX / 2) return fail(invalid_k, item, "%s: item %zu ends below 0", name, item);
        if (offsets[item + 1] < offsets[item])
            return fail(invalid_k, item, "%s: item %zu ends at %zu, before its start at %zu", name, item,
                        offsets[item + 1], offsets[item]);
        if (offsets[item + 1] > rows)
            return fail(invalid_k, item, "%s: item %zu ends at %zu, past the %zu rows", name, item, offsets[item + 1],
                        rows);
    }
    return uform_success_k;
}

size_t packed_bytes(size_t width, size_t lanes, uform_vectors_kind_t kind) noexcept {
    switch (kind) {
    case uform_vectors_f32_k: return width * lanes * sizeof(float);
    case uform_vectors_bf16_k: return round_up(width, padding_columns_k) * lanes * sizeof(bf16_t);
    case uform_vectors_i8_k: return round_up(width, 4) * lanes;
    case uform_vectors_bits_k: return round_up(width, 64) / 8 * lanes;
    }
    return 0;
}

void pack_queries(uform_vectors_t const &vectors, size_t first, size_t count, size_t lanes, uform_vectors_kind_t kind,
                  void *packed) noexcept {
    size_t const width = vectors.width;
    std::memset(packed, 0, packed_bytes(width, lanes, kind));
    for (size_t lane = 0; lane != count; ++lane) {
        std::byte const *const row = row_of(vectors, first + lane);
        switch (kind) {
        case uform_vectors_f32_k: {
            auto *out = static_cast<float *>(packed) + lane;
            for (size_t column = 0; column != width; ++column)
                out[column * lanes] = vectors.kind == uform_vectors_f32_k
                                          ? reinterpret_cast<float const *>(row)[column]
                                          : bf16_to_f32(reinterpret_cast<bf16_t const *>(row)[column]);
            break;
        }
        case uform_vectors_bf16_k: {
            // Panels of 16 rows, pairs of columns: see packed.h.
            size_t const panel = lane / panel_rows_k * panel_rows_k * round_up(width, padding_columns_k);
            auto *out = static_cast<bf16_t *>(packed) + panel + lane % panel_rows_k * 2;
            for (size_t column = 0; column != width; ++column)
                out[column / 2 * 2 * panel_rows_k + column % 2] =
                    vectors.kind == uform_vectors_bf16_k ? reinterpret_cast<bf16_t const *>(row)[column]
                                                         : f32_to_bf16(reinterpret_cast<float const *>(row)[column]);
            break;
        }
        case uform_vectors_i8_k: {
            auto *out = static_cast<std::byte *>(packed) + lane * 4;
            for (size_t column = 0; column != width; ++column) out[column / 4 * 4 * lanes + column % 4] = row[column];
            break;
        }
        case uform_vectors_bits_k: {
            auto *out = static_cast<std::byte *>(packed) + lane * 8;
            for (size_t byte = 0; byte != width / 8; ++byte) out[byte / 8 * 8 * lanes + byte % 8] = row[byte];
            break;
        }
        }
    }
}

} // namespace uform

char const *uform_vectors_kind_name(int kind) {
    switch (kind) {
    case uform_vectors_f32_k: return "F32";
    case uform_vectors_bf16_k: return "BF16";
    case uform_vectors_i8_k: return "I8";
    case uform_vectors_bits_k: return "BITS";
    default: return nullptr;
    }
}
