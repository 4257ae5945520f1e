/**
 *  Products with AMX tiles: two tiles of 16 rows of activations by two panels, four tiles of sums. A tile of
 * activations is 16 rows of 32 columns where they lie; a tile of weights is 1 KiB of a panel in a row.
 *
 *  Per 32 columns: 4 products of 16 * 16 * 32 (16 cycles each) stand against 4 loads of 1 KiB (8 cycles each from L1),
 *  two of them from the panels, which should stay in L1 while rows change, and two from the activations, which come
 *  from L2 at about half the rate. Sums leave through memory, as AMX has no other way; the caller's block is in L1.
 */
#pragma once
#include "../simd/sapphire.h"

namespace uform {
namespace {

/** What LDTILECFG reads: all eight tiles of 16 rows by 64 bytes. */
struct alignas(64) tile_configuration_t {
    uint8_t palette = 1;
    uint8_t start_row = 0;
    uint8_t reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/** A constant: GCC takes its intrinsic to read 8 bytes, and would leave out writing the others to a variable. */
constexpr tile_configuration_t tile_configuration_k;

/** The thread's tiles for its lifetime. Products need one alive. */
struct tiles_t {
    tiles_t() noexcept { _tile_loadconfig(&tile_configuration_k); }
    ~tiles_t() { _tile_release(); }
    tiles_t(tiles_t const &) = delete;
    tiles_t &operator=(tiles_t const &) = delete;
};

struct sapphire_product_t : sapphire_t {
    static constexpr size_t product_rows = 32;
    static constexpr size_t pair_step = 16;
    using decoded_t = bf16_t;
    static constexpr float decoded_unit = 1;

    /** Full pairs of tiles first: a pair costs the same however few of its rows are used. */
    static size_t next_rows(size_t left) noexcept { return left < product_rows ? left : product_rows; }

    static void product(size_t rows, bf16_t const *activations, size_t activation_stride, bf16_t const *panels,
                        size_t panel_stride, size_t pairs, float *out, size_t out_stride) noexcept {
        accumulate(rows, activations, activation_stride, panels, panel_stride, pairs, out, out_stride, true);
    }

    /** Adds to the sums in `out`, or starts them. Sums that are continued have the same bits as those made at once. */
    static void accumulate(size_t rows, bf16_t const *activations, size_t activation_stride, bf16_t const *panels,
                           size_t panel_stride, size_t pairs, float *out, size_t out_stride, bool starts) noexcept {
        size_t const stride = activation_stride * sizeof(bf16_t), out_bytes = out_stride * sizeof(float);
        bf16_t const *first = panels, *second = panels + panel_stride;
        bf16_t const *upper = activations, *lower = activations + 16 * activation_stride;
        float *const lower_out = out + 16 * out_stride;
        constexpr size_t tile_columns = 32, tile_elements = 16 * tile_columns, line_bytes = 64;
        bool const is_whole = rows > 16;
        // GCC does not know that loads of tiles read memory: what was written before must be there.
        __asm__ volatile("" ::: "memory");
        if (starts) {
            _tile_zero(0);
            _tile_zero(1);
            _tile_zero(2);
            _tile_zero(3);
        }
        else {
            _tile_loadd(0, out, out_bytes);
            _tile_loadd(1, out + 16, out_bytes);
            if (is_whole) {
                _tile_loadd(2, lower_out, out_bytes);
                _tile_loadd(3, lower_out + 16, out_bytes);
            }
        }
        if (is_whole) {
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
            _tile_stored(2, lower_out, out_bytes);
            _tile_stored(3, lower_out + 16, out_bytes);
        }
        else {
            for (size_t pair = 0; pair != pairs; pair += 16) {
                _tile_loadd(4, upper, stride);
                _tile_loadd(6, first, line_bytes);
                _tile_dpbf16ps(0, 4, 6);
                _tile_loadd(7, second, line_bytes);
                _tile_dpbf16ps(1, 4, 7);
                upper += tile_columns, first += tile_elements, second += tile_elements;
            }
        }
        _tile_stored(0, out, out_bytes);
        _tile_stored(1, out + 16, out_bytes);
    }
};

} // namespace
} // namespace uform
