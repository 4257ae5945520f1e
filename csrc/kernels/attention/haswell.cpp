#if defined(__x86_64__)
#include "../product/haswell.h"

#include "attention_simd.h"
#include "pack_serial.h"

namespace uform {
namespace {

struct haswell_attention_t : haswell_product_t {
    static constexpr auto pack_keys = pack_keys_serial;
    static constexpr auto pack_values = pack_values_serial;
};

} // namespace

void attention_haswell(attention_t const &arguments) noexcept { attention<haswell_attention_t>(arguments); }

} // namespace uform

#include "../simd/end.h"
#endif
