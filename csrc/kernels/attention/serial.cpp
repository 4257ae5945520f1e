#include "../product/serial.h"

#include "attention_simd.h"
#include "pack_serial.h"

namespace uform {
namespace {

struct serial_attention_t : serial_product_t {
    static constexpr auto pack_keys = pack_keys_serial;
    static constexpr auto pack_values = pack_values_serial;
};

} // namespace

void attention_serial(attention_t const &arguments) noexcept { attention<serial_attention_t>(arguments); }

} // namespace uform
