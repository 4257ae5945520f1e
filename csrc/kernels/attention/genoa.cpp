#if defined(__x86_64__)
#include "../product/genoa.h"

#include "attention_simd.h"
#include "pack_avx512.h"

namespace uform {
namespace {

struct genoa_attention_t : genoa_product_t {
    static constexpr auto pack_keys = pack_keys_avx512<activation_t>;
    static constexpr auto pack_values = pack_values_avx512<activation_t>;
};

} // namespace

void attention_genoa(attention_t const &arguments) noexcept { attention<genoa_attention_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
