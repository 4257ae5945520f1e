/** SKYLAKE: AVX-512, F32 activations. A file of this class includes it after all others, and `simd/end.h` last. */
#pragma once
#include <cstddef>

#include "../packed.h"
#include "intrinsics.h"

#define UFORM_TARGET "avx2,fma,avx512f,avx512bw,avx512dq,avx512vl"
#include "begin.h"

#include "avx512.h"

namespace uform {
namespace {

struct skylake_t : avx512_t {
    using activation_t = float;
    static constexpr bool rounds_activations = false;

    static vector_t load_activations(float const *pointer) noexcept { return load(pointer); }
    static void store_activations(float *pointer, vector_t value) noexcept { store(pointer, value); }
    static void store_activations(float *pointer, vector_t value, size_t count) noexcept {
        store(pointer, value, count);
    }
};

} // namespace
} // namespace uform
