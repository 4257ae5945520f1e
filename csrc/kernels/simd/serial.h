/** SERIAL: "vectors" of one F32 in plain C++, F32 activations: the reference for the other classes. */
#pragma once
#include <cmath>
#include <cstddef>

#include "../packed.h"

namespace uform {
namespace {

struct serial_t {
    using vector_t = float;
    using activation_t = float;
    static constexpr bool rounds_activations = false;
    static constexpr size_t lanes = 1;

    static float zero() noexcept { return 0.f; }
    static float fill(float value) noexcept { return value; }
    static float load(float const *pointer) noexcept { return *pointer; }
    static float load(float const *, size_t) noexcept { return 0.f; }
    static void store(float *pointer, float value) noexcept { *pointer = value; }
    static void store(float *, float, size_t) noexcept {}
    static float add(float a, float b) noexcept { return a + b; }
    static float subtract(float a, float b) noexcept { return a - b; }
    static float multiply(float a, float b) noexcept { return a * b; }
    static float divide(float a, float b) noexcept { return a / b; }
    static float maximum(float a, float b) noexcept { return a > b ? a : b; }
    static float minimum(float a, float b) noexcept { return a < b ? a : b; }
    static float multiply_add(float a, float b, float c) noexcept { return a * b + c; }
    static float fraction(float a) noexcept { return a - std::floor(a); }
    static float scale(float a, float exponent) noexcept {
        return std::ldexp(a, static_cast<int>(std::floor(maximum(exponent, -252.f))));
    }
    static float sum(float a) noexcept { return a; }
    static float largest(float a) noexcept { return a; }
    static float load_activations(float const *pointer) noexcept { return *pointer; }
    static void store_activations(float *pointer, float value) noexcept { *pointer = value; }
    static void store_activations(float *, float, size_t) noexcept {}
};

} // namespace
} // namespace uform
