/** Functions of vectors, over any class's vector type. Included behind a class's header. Internal linkage: see there.
 */
#pragma once

namespace uform {
namespace {

/**
 *  2^x. Below -200, minus infinity included, it is 0; of 0 it is 1 exactly, so that a factor that changes nothing
 *  leaves all bits as they are. Relative error under 2e-7: minimax polynomial of degree 5 on [-1/2, 1/2].
 */
template <typename simd_type_> inline typename simd_type_::vector_t exp2(typename simd_type_::vector_t x) noexcept {
    using simd_t = simd_type_;
    x = simd_t::maximum(x, simd_t::fill(-200.f));
    auto integer = simd_t::round(x);
    auto fraction = simd_t::subtract(x, integer);
    auto result = simd_t::fill(0.00132647271f);
    result = simd_t::multiply_add(result, fraction, simd_t::fill(0.00967151264f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(0.0555073374f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(0.240222421f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(0.693146978f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(1.f));
    return simd_t::scale(result, integer);
}

/** x / (1 + e^-x). Where e^-x would overflow, the exponent is held at 2^126: the result is zero to F32 rounding. */
template <typename simd_type_> inline typename simd_type_::vector_t silu(typename simd_type_::vector_t x) noexcept {
    using simd_t = simd_type_;
    auto exponent = simd_t::multiply(x, simd_t::fill(-1.44269504f));
    // The minimum of a and b is minus the maximum of their negatives.
    exponent = simd_t::subtract(simd_t::zero(),
                                simd_t::maximum(simd_t::subtract(simd_t::zero(), exponent), simd_t::fill(-126.f)));
    auto denominator = simd_t::add(exp2<simd_t>(exponent), simd_t::fill(1.f));
    return simd_t::divide(x, denominator);
}

} // namespace
} // namespace uform
