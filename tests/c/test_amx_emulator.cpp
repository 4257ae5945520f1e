/**
 *  Tiles of AMX, by the emulator or by hardware, whichever the machine has: what is computed, and that what hardware
 *  faults on ends the process under the emulator, too. Passes without a check where the processor lacks AVX512-BF16.
 */
#include <cstdio>

#include "check.h"

#if defined(__x86_64__) && defined(__linux__)
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "amx_emulator.c"

#include "uform/types.h"

#include "kernels/simd/sapphire.h"

namespace {

struct alignas(64) configuration_t {
    unsigned char palette = 1, start_row = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
    unsigned char rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};

/** A variable is written before it is read: see product/sapphire.h. */
void load(configuration_t const &configuration) {
    __asm__ volatile("" : : "r"(&configuration) : "memory");
    _tile_loadconfig(&configuration);
}

alignas(64) float sums[16][16];
alignas(64) uint16_t left[16][32], right[16][32];

void multiply_tiles() {
    __asm__ volatile("" : : : "memory");
    _tile_loadd(0, sums, 64);
    _tile_loadd(1, left, 64);
    _tile_loadd(2, right, 64);
    _tile_dpbf16ps(0, 1, 2);
    _tile_stored(0, sums, 64);
}

uint16_t narrow(float value) {
    uint32_t bits;
    std::memcpy(&bits, &value, sizeof(bits));
    return static_cast<uint16_t>(bits >> 16);
}

void clear() {
    std::memset(sums, 0, sizeof(sums));
    std::memset(left, 0, sizeof(left));
    std::memset(right, 0, sizeof(right));
}

void test_products() {
    clear();
    for (int row = 0; row != 16; ++row)
        for (int k = 0; k != 32; ++k) left[row][k] = narrow(static_cast<float>(row + k));
    for (int n = 0; n != 16; ++n)
        for (int k = 0; k != 32; ++k) right[k / 2][2 * n + k % 2] = narrow(static_cast<float>(n - k));
    for (auto &row : sums)
        for (float &sum : row) sum = 0.5f;
    load({});
    multiply_tiles();
    _tile_release();
    for (int row = 0; row != 16; ++row)
        for (int n = 0; n != 16; ++n) {
            float expected = 0.5f;
            for (int k = 0; k != 32; ++k) expected += static_cast<float>((row + k) * (n - k));
            CHECK(sums[row][n] == expected);
        }
}

/** Even and odd columns have sums of their own, and numbers below the normal ones are zeros. */
void test_rounding() {
    clear();
    left[0][0] = left[0][1] = left[0][3] = narrow(1);
    right[0][0] = narrow(0x1p24f), right[0][1] = right[1][1] = narrow(1);
    left[1][0] = narrow(0x1p-100f), right[0][2] = narrow(0x1p-30f);
    left[2][0] = 1, right[0][4] = narrow(0x1p126f);
    sums[3][3] = 0x1p-130f;
    load({});
    multiply_tiles();
    _tile_release();
    // One after the other, each 1 would be lost to rounding.
    CHECK(sums[0][0] == 0x1p24f + 2);
    CHECK(sums[1][1] == 0 && sums[2][2] == 0 && sums[3][3] == 0);
}

/** Rows and bytes behind a tile's own are neither read nor written, and zeros once it is loaded. */
void test_small_tiles() {
    clear();
    for (auto &row : sums)
        for (float &sum : row) sum = 7;
    configuration_t configuration;
    configuration.rows[0] = configuration.rows[1] = 3;
    configuration.row_bytes[0] = configuration.row_bytes[2] = 20;
    load(configuration);
    configuration_t stored;
    _tile_storeconfig(&stored);
    __asm__ volatile("" : : "r"(&stored) : "memory");
    CHECK(std::memcmp(&stored, &configuration, sizeof(stored)) == 0);
    _tile_zero(0);
    _tile_stored(0, sums, 64);
    _tile_release();
    for (int row = 0; row != 16; ++row)
        for (int n = 0; n != 16; ++n) CHECK(sums[row][n] == (row < 3 && n < 5 ? 0.f : 7.f));
}

/** Whether a process that does this is ended by a signal. */
template <typename callable_type_> bool is_fatal(callable_type_ &&callable) {
    std::fflush(stdout), std::fflush(stderr);
    pid_t const child = fork();
    if (child == 0) {
        rlimit const no_core {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        close(STDERR_FILENO);
        callable();
        _exit(0);
    }
    int status = 0;
    return waitpid(child, &status, 0) == child && WIFSIGNALED(status);
}

template <typename callable_type_> bool is_refused(callable_type_ &&change) {
    configuration_t configuration;
    change(configuration);
    return is_fatal([&] { load(configuration); });
}

void test_refusals() {
    CHECK(!is_refused([](configuration_t &) {}));
    CHECK(is_refused([](configuration_t &configuration) { configuration.palette = 200; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.reserved[0] = 1; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.reserved[13] = 1; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.rows[0] = 17; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.row_bytes[7] = 65; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.rows[3] = 0; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.row_bytes[3] = 0; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.rows[8] = 16; }));
    CHECK(is_refused([](configuration_t &configuration) { configuration.row_bytes[15] = 64; }));
    CHECK(is_fatal([] { _tile_zero(0); }));
    CHECK(is_fatal([] { _tile_loadd(0, sums, 64); }));
    CHECK(is_fatal([] {
        load({});
        _tile_release();
        _tile_stored(0, sums, 64);
    }));
    CHECK(is_fatal([] {
        configuration_t configuration;
        configuration.rows[1] = 15;
        load(configuration);
        multiply_tiles();
    }));
    CHECK(is_fatal([] {
        configuration_t configuration;
        configuration.rows[2] = 15;
        load(configuration);
        multiply_tiles();
    }));
}

} // namespace

#include "kernels/simd/end.h"

int main() {
    if (!__builtin_cpu_supports("avx512bf16") || !__builtin_cpu_supports("avx512vbmi")) return check_report();
    setenv("UFORM_ASSUME_CPU_CLASS", "SAPPHIRE", 0);
    // Asks the system for tiles where the processor has them.
    if (!uform_cpu_class_supported(uform_cpu_class_sapphire_k)) return check_report();
    RUN(test_products);
    RUN(test_rounding);
    RUN(test_small_tiles);
    RUN(test_refusals);
    return check_report();
}

#else
int main() { return check_report(); }
#endif
