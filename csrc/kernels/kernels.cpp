#include "kernels.h"

namespace uform {

kernels_t const &kernels_of(uform_cpu_class_t cpu_class) noexcept {
    static constexpr kernels_t serial = {
        uform_cpu_class_serial_k, uform_f32_k,      256,         48,          linear_serial,
        attention_serial,         normalize_serial, unit_serial, rope_serial, pool_serial};
#if defined(__x86_64__)
    static constexpr kernels_t haswell = {
        uform_cpu_class_haswell_k, uform_f32_k,       256,          48,           linear_haswell,
        attention_haswell,         normalize_haswell, unit_haswell, rope_haswell, pool_haswell};
    static constexpr kernels_t skylake = {
        uform_cpu_class_skylake_k, uform_f32_k,       256,          48,           linear_skylake,
        attention_skylake,         normalize_skylake, unit_skylake, rope_skylake, pool_skylake};
    static constexpr kernels_t genoa = {
        uform_cpu_class_genoa_k, uform_bf16_k,    384,          48,         linear_genoa,
        attention_genoa,         normalize_genoa, unit_skylake, rope_genoa, pool_genoa};
    static constexpr kernels_t sapphire = {
        uform_cpu_class_sapphire_k, uform_bf16_k,    512,          64,         linear_sapphire,
        attention_sapphire,         normalize_genoa, unit_skylake, rope_genoa, pool_genoa};
    switch (cpu_class) {
    case uform_cpu_class_haswell_k: return haswell;
    case uform_cpu_class_skylake_k: return skylake;
    case uform_cpu_class_genoa_k: return genoa;
    case uform_cpu_class_sapphire_k: return sapphire;
    default: break;
    }
#endif
    return serial;
}

} // namespace uform
