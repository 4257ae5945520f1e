/** Functions of vectors, over any class's vector type. Included behind a class's header. Internal linkage: see there.
 */
#pragma once

namespace uform {
namespace {

/**
 *  2^x, for x below 127. Of 0 it is 1 exactly, so that a factor that changes nothing leaves all bits as they are; where
 *  it is too small for a number it is 0. Relative error: 2e-7, and 9e-5 where the class rounds activations to BF16,
 *  whose own rounding is 2e-3. Minimax polynomials of 2^f on [0, 1] with the value 1 at 0.
 */
template <typename simd_type_> inline typename simd_type_::vector_t exp2(typename simd_type_::vector_t x) noexcept {
    using simd_t = simd_type_;
    auto const fraction = simd_t::fraction(x);
    auto power = simd_t::fill(simd_t::rounds_activations ? 0.0770670548f : 0.00186713017f);
    if constexpr (simd_t::rounds_activations) {
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.22764498f));
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.695116818f));
    }
    else {
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.00901702978f));
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.0557999127f));
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.240164444f));
        power = simd_t::multiply_add(power, fraction, simd_t::fill(0.693151295f));
    }
    return simd_t::scale(simd_t::multiply_add(power, fraction, simd_t::fill(1.f)), x);
}

/** x / (1 + e^-x). The exponent is held at 2^126, where the result is zero to F32 rounding. */
template <typename simd_type_> inline typename simd_type_::vector_t silu(typename simd_type_::vector_t x) noexcept {
    using simd_t = simd_type_;
    auto exponent = simd_t::minimum(simd_t::multiply(x, simd_t::fill(-1.44269504f)), simd_t::fill(126.f));
    return simd_t::divide(x, simd_t::add(exp2<simd_t>(exponent), simd_t::fill(1.f)));
}

} // namespace
} // namespace uform
