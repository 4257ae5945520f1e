#include "cpu_class.h"

#include <cstdint>
#include <cstdlib>
#include <cstring>

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#if defined(__x86_64__) && defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif

#include "failure.h"
#include "kind.h"

namespace uform {
namespace {

struct detected_t {
    uint32_t supported = 0; /**< Bit `c` is set where class `c` can run. */
    uform_cpu_class_t derived = uform_cpu_class_serial_k;
    bool has_integer_vectors = false;
};

constexpr uint32_t bit_of(uform_cpu_class_t cpu_class) noexcept { return uint32_t(1) << cpu_class; }

/** The class that the test variable names, or zero. */
uform_cpu_class_t assumed_class() noexcept {
    char const *assumed = std::getenv("UFORM_ASSUME_CPU_CLASS");
    if (!assumed) return uform_cpu_class_default_k;
    for (int candidate = uform_cpu_class_serial_k; uform_cpu_class_name(candidate); ++candidate)
        if (!std::strcmp(assumed, uform_cpu_class_name(candidate))) return uform_cpu_class_t(candidate);
    return uform_cpu_class_default_k;
}

#if defined(__x86_64__)

struct registers_t {
    uint32_t a = 0, b = 0, c = 0, d = 0;
};

registers_t cpuid(uint32_t leaf, uint32_t subleaf) noexcept {
    registers_t result;
    if (!__get_cpuid_count(leaf, subleaf, &result.a, &result.b, &result.c, &result.d)) return {};
    return result;
}

constexpr bool has(uint32_t value, unsigned bit) noexcept { return (value >> bit) & 1; }

/** Register state that the operating system saves; `xgetbv` by hand, since its intrinsic needs a compiler option. */
uint64_t saved_state() noexcept {
    uint32_t low, high;
    __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return uint64_t(high) << 32 | low;
}

/** Linux gives a process tiles only where it asks. */
bool tiles_permitted() noexcept {
#if defined(__linux__)
    constexpr long request_permission_k = 0x1023, tile_data_k = 18;
    return syscall(SYS_arch_prctl, request_permission_k, tile_data_k) == 0;
#else
    return false;
#endif
}

detected_t detect() noexcept {
    detected_t detected;
    detected.supported = bit_of(uform_cpu_class_serial_k);
    uform_cpu_class_t const assumed = assumed_class();
    if (assumed != uform_cpu_class_default_k) detected.supported |= bit_of(assumed);

    registers_t const features = cpuid(1, 0);
    bool const has_xgetbv = has(features.c, 27);
    uint64_t const state = has_xgetbv ? saved_state() : 0;
    auto const saves = [state](uint64_t mask) noexcept { return (state & mask) == mask; };
    constexpr uint64_t ymm_k = 0x6, zmm_k = 0xE6, tiles_k = 0x60000;

    registers_t const extended = cpuid(7, 0), more = cpuid(7, 1);
    bool const haswell = saves(ymm_k) && has(features.c, 12) && has(features.c, 23) && has(features.c, 28) &&
                         has(features.c, 29) && has(extended.b, 5) && has(extended.b, 3) && has(extended.b, 8);
    bool const skylake = haswell && saves(zmm_k) && has(extended.b, 16) && has(extended.b, 17) && has(extended.b, 30) &&
                         has(extended.b, 31);
    detected.has_integer_vectors = skylake && has(extended.c, 11) && has(extended.c, 14);
    bool const genoa = detected.has_integer_vectors && has(more.a, 5) && has(extended.c, 1);
    bool const tiles = genoa && saves(tiles_k) && has(extended.d, 24) && has(extended.d, 22);
    bool const sapphire = tiles && tiles_permitted();

    if (haswell) detected.supported |= bit_of(uform_cpu_class_haswell_k);
    if (skylake) detected.supported |= bit_of(uform_cpu_class_skylake_k);
    if (genoa) detected.supported |= bit_of(uform_cpu_class_genoa_k);
    if (sapphire) detected.supported |= bit_of(uform_cpu_class_sapphire_k);

    // Intel's VDPBF16PS has half the throughput of F32 FMA, AMD's has twice.
    registers_t const vendor = cpuid(0, 0);
    bool const amd = vendor.b == signature_AMD_ebx && vendor.c == signature_AMD_ecx && vendor.d == signature_AMD_edx;
    if (sapphire) detected.derived = uform_cpu_class_sapphire_k;
    else if (genoa && amd) detected.derived = uform_cpu_class_genoa_k;
    else if (skylake) detected.derived = uform_cpu_class_skylake_k;
    else if (haswell) detected.derived = uform_cpu_class_haswell_k;
    return detected;
}

#else

detected_t detect() noexcept {
    detected_t detected;
    detected.supported = bit_of(uform_cpu_class_serial_k);
    uform_cpu_class_t const assumed = assumed_class();
    if (assumed != uform_cpu_class_default_k) detected.supported |= bit_of(assumed);
    return detected;
}

#endif

detected_t const &detected() noexcept {
    static detected_t const once = detect();
    return once;
}

} // namespace

uform_status_t check_cpu_class(uform_cpu_class_t const &cpu_class) noexcept {
    int const number = number_of(cpu_class);
    if (number == uform_cpu_class_default_k) return uform_success_k;
    char const *name = uform_cpu_class_name(number);
    if (!name) return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "cpu_class: %d is no CPU class", number);
    if (!uform_cpu_class_supported(number))
        return fail(uform_unsupported_k, UFORM_NO_ITEM, "cpu_class: this machine cannot run %s", name);
    return uform_success_k;
}

bool has_integer_vectors() noexcept { return detected().has_integer_vectors; }

} // namespace uform

bool uform_cpu_class_supported(int cpu_class) {
    if (!uform_cpu_class_name(cpu_class)) return false;
    return (uform::detected().supported >> cpu_class) & 1;
}

uform_cpu_class_t uform_cpu_class_derive(void) { return uform::detected().derived; }
