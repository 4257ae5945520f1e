#if defined(__x86_64__)
#include "../product/genoa.h"

#include "score_product.h"
#include "score_screen.h"

namespace uform {

void score_bf16_genoa(score_t const &arguments) noexcept { score_products<genoa_product_t>(arguments); }

bool score_screen_genoa(score_screen_t const &arguments) noexcept { return screen<genoa_product_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
