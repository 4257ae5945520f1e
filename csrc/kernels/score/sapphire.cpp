#if defined(__x86_64__)
#include "../product/sapphire.h"

#include "score_product.h"

namespace uform {

void score_bf16_sapphire(score_t const &arguments) noexcept {
    tiles_t tiles;
    score_products<sapphire_product_t>(arguments);
}

} // namespace uform

#include "../simd/end.h"
#endif
