/** BF16 scores over a class's products. Included behind the class's header. Internal linkage: see there. */
#pragma once
#include "../product/product.h"
#include "prefetch.h"
#include "score.h"

namespace uform {
namespace {

template <typename product_type_> void score_products(score_t const &arguments) noexcept {
    using product_t = product_type_;
    size_t const pairs = arguments.width / 2, panel_stride = arguments.width * panel_rows_k;
    size_t const stride = arguments.row_bytes / sizeof(bf16_t);
    auto const *rows = static_cast<bf16_t const *>(arguments.rows);
    auto const *panels = static_cast<bf16_t const *>(arguments.queries);
    auto *scores = static_cast<float *>(arguments.scores);
    for (size_t row = 0, some; row != arguments.count; row += some) {
        some = product_t::next_rows(arguments.count - row);
        prefetch_rows(rows + row * stride, some * arguments.row_bytes);
        product_t::product(some, rows + row * stride, stride, panels, panel_stride, pairs, scores + row * score_lanes_k,
                           score_lanes_k);
    }
}

} // namespace
} // namespace uform
