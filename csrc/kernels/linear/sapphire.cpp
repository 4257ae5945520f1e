#if defined(__x86_64__)
#include "../product/sapphire.h"

#include "linear_simd.h"

namespace uform {

void linear_sapphire(linear_t const &arguments) noexcept {
    tiles_t tiles;
    linear<sapphire_product_t>(arguments);
}

} // namespace uform

#include "../simd/end.h"
#endif
