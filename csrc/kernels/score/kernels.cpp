#include "kernels.h"

#include "../../core/cpu_class.h"

namespace uform {

score_kernels_t const &score_kernels_of(uform_cpu_class_t cpu_class) noexcept {
    static constexpr score_kernels_t serial = {score_f32_serial,  score_f32_half_serial, score_f32_narrow_serial,
                                               nullptr,           score_i8_serial,       score_i8_one_serial,
                                               score_bits_serial, score_bits_one_serial, nullptr};
#if defined(__x86_64__)
    // With eight lanes, a vector of AVX-512 would be half empty.
    static constexpr score_kernels_t haswell = {
        score_f32_haswell,    score_f32_half_haswell, score_f32_narrow_haswell, nullptr, score_i8_haswell,
        score_i8_one_haswell, score_bits_haswell,     score_bits_one_haswell,   nullptr};
    static constexpr score_kernels_t skylake = {
        score_f32_skylake,    score_f32_half_skylake, score_f32_narrow_haswell, nullptr, score_i8_haswell,
        score_i8_one_haswell, score_bits_haswell,     score_bits_one_haswell,   nullptr};
    // No class of its own: sums of integers are the same in all.
    static constexpr score_kernels_t icelake = {
        score_f32_skylake,    score_f32_half_skylake, score_f32_narrow_haswell, nullptr, score_i8_icelake,
        score_i8_one_icelake, score_bits_icelake,     score_bits_one_icelake,   nullptr};
    static constexpr score_kernels_t genoa = {score_f32_skylake,  score_f32_half_skylake, score_f32_narrow_haswell,
                                              score_bf16_genoa,   score_i8_icelake,       score_i8_one_icelake,
                                              score_bits_icelake, score_bits_one_icelake, score_screen_genoa};
    static constexpr score_kernels_t sapphire = {score_f32_skylake,   score_f32_half_skylake, score_f32_narrow_haswell,
                                                 score_bf16_sapphire, score_i8_icelake,       score_i8_one_icelake,
                                                 score_bits_icelake,  score_bits_one_icelake, score_screen_sapphire};
    switch (cpu_class) {
    case uform_cpu_class_haswell_k: return haswell;
    case uform_cpu_class_skylake_k: return has_integer_vectors() ? icelake : skylake;
    case uform_cpu_class_genoa_k: return genoa;
    case uform_cpu_class_sapphire_k: return sapphire;
    default: break;
    }
#endif
    return serial;
}

} // namespace uform
