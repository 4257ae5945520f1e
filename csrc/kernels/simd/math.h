/** Functions of vectors, over any class's vector type. Included behind a class's header. Internal linkage: see there. */
#pragma once

namespace uform {
namespace {

/**
 *  2^x. Below -200, minus infinity included, it is 0. Relative error under 1e-7 before the scaling: minimax polynomial
 *  of degree 5 on [-1/2, 1/2].
 */
template <typename simd_type_> inline typename simd_type_::vector_t exp2(typename simd_type_::vector_t x) noexcept {
    using simd_t = simd_type_;
    x = simd_t::maximum(x, simd_t::fill(-200.f));
    auto integer = simd_t::round(x);
    auto fraction = simd_t::subtract(x, integer);
    auto result = simd_t::fill(1.32764715e-3f);
    result = simd_t::multiply_add(result, fraction, simd_t::fill(9.67554133e-3f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(5.55071327e-2f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(2.40221197e-1f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(6.93146967e-1f));
    result = simd_t::multiply_add(result, fraction, simd_t::fill(1.00000007f));
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
