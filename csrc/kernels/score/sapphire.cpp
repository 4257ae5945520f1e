#if defined(__x86_64__)
#include "../product/sapphire.h"

#include "score_product.h"
#include "score_screen.h"

namespace uform {

void score_bf16_sapphire(score_t const &arguments) noexcept {
    tiles_t tiles;
    score_products<sapphire_product_t>(arguments);
}

bool score_screen_sapphire(score_screen_t const &arguments) noexcept {
    tiles_t tiles;
    return screen<sapphire_product_t>(arguments);
}

} // namespace uform

#include "../simd/end.h"
#endif
