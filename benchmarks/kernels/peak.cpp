#include "peak.h"

#include "stopwatch.h"

#if defined(__x86_64__)
#include "kernels/product/sapphire.h"

namespace uform {
namespace {

// Enough sums to hide the latency of each multiply-add: two a cycle, of four to six cycles.
constexpr int sums_k = 12;
constexpr int rounds_k = 20'000;

/** What the compiler must take as changed. */
#define UFORM_KEEP(vector) __asm__ volatile("" : "+v"(vector))

void haswell() noexcept {
    __m256 sums[sums_k] = {}, one = _mm256_set1_ps(1);
    for (int round = 0; round != rounds_k; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i != sums_k; ++i) {
            sums[i] = _mm256_fmadd_ps(one, one, sums[i]);
            UFORM_KEEP(sums[i]);
        }
    }
}

void skylake() noexcept {
    __m512 sums[sums_k] = {}, one = _mm512_set1_ps(1);
    for (int round = 0; round != rounds_k; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i != sums_k; ++i) {
            sums[i] = _mm512_fmadd_ps(one, one, sums[i]);
            UFORM_KEEP(sums[i]);
        }
    }
}

void genoa() noexcept {
    __m512 sums[sums_k] = {};
    auto const ones = (__m512bh)_mm512_set1_epi32(0x3f803f80);
    for (int round = 0; round != rounds_k; ++round) {
#pragma GCC unroll 12
        for (int i = 0; i != sums_k; ++i) {
            sums[i] = _mm512_dpbf16_ps(sums[i], ones, ones);
            UFORM_KEEP(sums[i]);
        }
    }
}

void sapphire() noexcept {
    tiles_t tiles;
    for (int round = 0; round != rounds_k; ++round) {
        _tile_dpbf16ps(0, 4, 6);
        _tile_dpbf16ps(1, 4, 7);
        _tile_dpbf16ps(2, 5, 6);
        _tile_dpbf16ps(3, 5, 7);
    }
}

} // namespace
} // namespace uform

#include "kernels/simd/end.h"
#endif

namespace uform {

double peak(uform_cpu_class_t cpu_class) noexcept {
    switch (cpu_class) {
#if defined(__x86_64__)
    case uform_cpu_class_haswell_k: return 2. * 8 * sums_k * rounds_k / fastest(haswell);
    case uform_cpu_class_skylake_k: return 2. * 16 * sums_k * rounds_k / fastest(skylake);
    case uform_cpu_class_genoa_k: return 2. * 32 * sums_k * rounds_k / fastest(genoa);
    case uform_cpu_class_sapphire_k: return 4. * 2 * 16 * 16 * 32 * rounds_k / fastest(sapphire);
#endif
    default: return 0;
    }
}

} // namespace uform
