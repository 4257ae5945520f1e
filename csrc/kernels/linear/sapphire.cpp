#if defined(__x86_64__)
#include "../product/sapphire.h"

#include "linear_simd.h"

namespace uform {
namespace {

/** Columns of a tile of weights that leave room in 48 KiB of L1 for the activations that pass through, and the sums. */
constexpr size_t part_columns_k = 384;
/** Blocks of 32 rows that take turns at a part of a tile, where it has several, while the block's sums stay in L1. */
constexpr size_t turns_k = 4;

/** A share of a tile of weights on its way from L3 to L2, `index` of `count`. */
inline void prefetch(void const *tile, size_t bytes, size_t index, size_t count) noexcept {
    auto const *pointer = static_cast<char const *>(tile) + bytes / 64 * index / count * 64;
    auto const *end = static_cast<char const *>(tile) + bytes / 64 * (index + 1) / count * 64;
    for (; pointer != end; pointer += 64) _mm_prefetch(pointer, _MM_HINT_T1);
}

/**
 *  A tile is taken in parts that fit L1, by a few blocks of rows each before the next part. A block is finished after
 *  the next block's product: AMX is a unit apart, and works on while vectors do.
 */
class linear_pass_t {
    using product_t = sapphire_product_t;
    static constexpr size_t block_rows = product_t::product_rows, block_size = block_rows * tile_rows_k;

  public:
    explicit linear_pass_t(linear_t const &arguments) noexcept
        : arguments_(arguments), weights_(*arguments.weights), steps_(weights_.padded_columns() / padding_columns_k),
          parts_((weights_.padded_columns() + part_columns_k - 1) / part_columns_k), turns_(parts_ == 1 ? 1 : turns_k) {
    }

    void run() noexcept {
        size_t const tile_size = tile_rows_k * weights_.padded_columns();
        for (size_t tile = arguments_.tile_begin; tile != arguments_.tile_end; ++tile) {
            panels_ = weights_.data + tile * tile_size;
            next_ = tile + 1 == weights_.tiles() ? nullptr : static_cast<void const *>(panels_ + tile_size);
            next_bytes_ = tile_size * sizeof(bf16_t);
            if (weights_.data_e4m3) {
                e4m3_t const *codes = weights_.data_e4m3 + tile * tile_size;
                auto const decoded = static_cast<bf16_t *>(arguments_.decoded);
                product_t::decode(codes, tile_size, decoded);
                panels_ = decoded;
                if (next_) next_ = codes + tile_size;
                next_bytes_ = tile_size;
            }
            for (size_t row = 0; row < arguments_.rows; row += turns_ * block_rows) multiply(tile, row);
        }
        finish_block<product_t>(unfinished_, arguments_.epilogue, arguments_.out_stride);
    }

  private:
    /** Some blocks from `row` on by a tile. */
    void multiply(size_t tile, size_t row) noexcept {
        size_t const end = row + turns_ * block_rows < arguments_.rows ? row + turns_ * block_rows : arguments_.rows;
        size_t const panel_stride = panel_rows_k * weights_.padded_columns();
        auto activations = static_cast<bf16_t const *>(arguments_.activations);
        size_t const first_slot = slot_;
        for (size_t part = 0; part != parts_; ++part) {
            size_t const begin = steps_ * part / parts_ * padding_columns_k;
            size_t const columns = steps_ * (part + 1) / parts_ * padding_columns_k - begin;
            slot_ = first_slot;
            for (size_t at = row; at < end; at += block_rows) {
                size_t const rows = product_t::next_rows(arguments_.rows - at);
                float *const sums = sums_ + slot_ * block_size;
                product_t::accumulate(rows, activations + at * arguments_.activation_stride + begin,
                                      arguments_.activation_stride, panels_ + begin * panel_rows_k, panel_stride,
                                      columns / 2, sums, tile_rows_k, part == 0);
                slot_ = slot_ == turns_ ? 0 : slot_ + 1;
                if (part + 1 == parts_) finish_last_and_keep(tile, at, rows, sums);
            }
        }
    }

    void finish_last_and_keep(size_t tile, size_t row, size_t rows, float *sums) noexcept {
        if (next_) prefetch(next_, next_bytes_, row / block_rows, (arguments_.rows + block_rows - 1) / block_rows);
        finish_block<product_t>(unfinished_, arguments_.epilogue, arguments_.out_stride);
        unfinished_ = block_of<product_t>(arguments_, tile, row, rows, sums);
    }

    linear_t const &arguments_;
    packed_t const &weights_;
    size_t const steps_, parts_, turns_;
    bf16_t const *panels_ = nullptr;
    void const *next_ = nullptr; /**< The next tile. */
    size_t next_bytes_ = 0;
    size_t slot_ = 0; /**< Where the next block's sums go: one slot more than turns, for the block not finished yet. */
    block_t unfinished_;
    alignas(64) float sums_[(turns_k + 1) * block_size];
};

} // namespace

void linear_sapphire(linear_t const &arguments) noexcept {
    tiles_t tiles;
    linear_pass_t(arguments).run();
}

} // namespace uform

#include "../simd/end.h"
#endif
