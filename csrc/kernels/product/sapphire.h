/**
 *  Products with AMX tiles: two tiles of 16 rows of activations by two panels, four tiles of sums. A tile of
 * activations is 16 rows of 32 columns where they lie; a tile of weights is 1 KiB of a panel in a row.
 *
 *  Per 32 columns: 4 products of 16 * 16 * 32 (16 cycles each) stand against 4 loads of 1 KiB, two of them from the
 *  panels, which stay in L1 while rows change, and two from the activations, which come from L2.
 *  Sums leave through memory, as AMX has no other way; the caller's block is in L1.
 */
#pragma once
#include "../simd/sapphire.h"

namespace uform {
namespace {

/** The thread's tiles for its lifetime: all eight of 16 rows by 64 bytes. Products need one alive. */
struct tiles_t {
    struct alignas(64) configuration_t {
        uint8_t palette = 1;
        uint8_t start_row = 0;
        uint8_t reserved[14] = {};
        uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
        uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
    };

    tiles_t() noexcept {
        configuration_t configuration;
        _tile_loadconfig(&configuration);
    }
    ~tiles_t() { _tile_release(); }
    tiles_t(tiles_t const &) = delete;
    tiles_t &operator=(tiles_t const &) = delete;
};

struct sapphire_product_t : genoa_t {
    static constexpr size_t product_rows = 32;
    static constexpr size_t pair_step = 16;

    /** Full pairs of tiles first: a pair costs the same however few of its rows are used. */
    static size_t next_rows(size_t left) noexcept { return left < product_rows ? left : product_rows; }

    static void product(size_t rows, bf16_t const *activations, size_t activation_stride, bf16_t const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        size_t const stride = activation_stride * sizeof(bf16_t), out_bytes = out_stride * sizeof(float);
        bf16_t const *first = panels, *second = panels + panel_stride;
        bf16_t const *upper = activations, *lower = activations + 16 * activation_stride;
        constexpr size_t tile_columns = 32, tile_elements = 16 * tile_columns, line_bytes = 64;
        _tile_zero(0);
        _tile_zero(1);
        if (rows <= 16) {
            for (size_t pair = 0; pair != pairs; pair += 16) {
                _tile_loadd(4, upper, stride);
                _tile_loadd(6, first, line_bytes);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, second, line_bytes);
                _tile_dpbf16ps(1, 4, 7);
                upper += tile_columns, first += tile_elements, second += tile_elements;
            }
        }
        else {
            _tile_zero(2);
            _tile_zero(3);
            for (size_t pair = 0; pair != pairs; pair += 16) {
                _tile_loadd(4, upper, stride);
                _tile_loadd(6, first, line_bytes);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, second, line_bytes);
                _tile_dpbf16ps(1, 4, 7);
                _tile_loadd(5, lower, stride);
                _tile_dpbf16ps(2, 5, 6);
                _tile_dpbf16ps(3, 5, 7);
                upper += tile_columns, lower += tile_columns, first += tile_elements, second += tile_elements;
            }
            _tile_stored(2, out + 16 * out_stride, out_bytes);
            _tile_stored(3, out + 16 * out_stride + 16, out_bytes);
        }
        _tile_stored(0, out, out_bytes);
        _tile_stored(1, out + 16, out_bytes);
    }
};

} // namespace
} // namespace uform
