#if defined(__x86_64__)
#include "../product/skylake.h"

#include "attention_simd.h"
#include "pack_avx512.h"

namespace uform {
namespace {

struct skylake_attention_t : skylake_product_t {
    static constexpr auto pack_keys = pack_keys_avx512<activation_t>;
    static constexpr auto pack_values = pack_values_avx512<activation_t>;
};

} // namespace

void attention_skylake(attention_t const &arguments) noexcept { attention<skylake_attention_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
