/** Conversions between F32 and the narrow scalars: every code, every tie. */
#include <cmath>
#include <initializer_list>
#include <limits>

#include "check.h"
#include "kernels/scalars.h"
#include "uform/types.h"

using namespace uform;

/** From the definition of the format (OCP 8-bit floating point specification, revision 1.0), in double. */
static double e4m3_value(unsigned code) {
    unsigned const exponent = code >> 3 & 15, mantissa = code & 7;
    if (exponent == 15 && mantissa == 7) return std::nan("");
    double const magnitude =
        exponent ? std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10) : std::ldexp(mantissa, -9);
    return code & 0x80 ? -magnitude : magnitude;
}

static void e4m3_codes_have_their_values() {
    CHECK(e4m3_value(0x7e) == 448 && e4m3_value(0x38) == 1 && e4m3_value(0x01) == 0x1p-9 && e4m3_value(0x08) == 0x1p-6);
    for (unsigned code = 0; code != 256; ++code) {
        float const value = e4m3_to_f32(static_cast<e4m3_t>(code));
        if ((code & 0x7f) == 0x7f) CHECK(std::isnan(value));
        else CHECK(value == static_cast<float>(e4m3_value(code)) && std::signbit(value) == (code >= 0x80));
        CHECK(f32_to_e4m3(value) == code);
    }
}

static void e4m3_rounds_to_nearest_and_ties_to_even() {
    for (unsigned code = 0; code != 0x7e; ++code) {
        double const low = e4m3_value(code), high = e4m3_value(code + 1);
        float const tie = static_cast<float>((low + high) / 2);
        unsigned const even = code % 2 ? code + 1 : code;
        CHECK(f32_to_e4m3(tie) == even && f32_to_e4m3(-tie) == (even | 0x80));
        CHECK(f32_to_e4m3(std::nextafter(tie, 0.f)) == code);
        CHECK(f32_to_e4m3(std::nextafter(tie, 1000.f)) == code + 1);
    }
}

static void e4m3_saturates_and_keeps_nan() {
    float const infinity = std::numeric_limits<float>::infinity();
    for (float large : {448.f, 449.f, 464.f, 480.f, 1e9f, std::numeric_limits<float>::max(), infinity}) {
        CHECK(f32_to_e4m3(large) == 0x7e);
        CHECK(f32_to_e4m3(-large) == 0xfe);
    }
    CHECK(f32_to_e4m3(std::numeric_limits<float>::denorm_min()) == 0 && f32_to_e4m3(-1e-30f) == 0x80);
    CHECK(f32_to_e4m3(std::nanf("")) == 0x7f && f32_to_e4m3(-std::nanf("")) == 0xff);
}

static void bf16_keeps_every_code_and_ties_to_even() {
    for (unsigned code = 0; code != 0x10000; ++code) {
        bf16_t const half = static_cast<bf16_t>(code);
        float const value = bf16_to_f32(half);
        if (std::isnan(value)) {
            CHECK(f32_to_bf16(value) == (code | 0x40));
            continue;
        }
        CHECK(f32_to_bf16(value) == half);
        if (std::isinf(value)) continue;
        uint32_t const tie = static_cast<uint32_t>(code) << 16 | 0x8000u;
        CHECK(f32_to_bf16(bits_to_f32(tie)) == (code + (code & 1)));
        CHECK(f32_to_bf16(bits_to_f32(tie - 1)) == code);
        CHECK(f32_to_bf16(bits_to_f32(tie + 1)) == code + 1);
    }
    // A NaN whose upper half alone would read as infinity.
    CHECK(f32_to_bf16(bits_to_f32(0x7f800001u)) == 0x7fc0 && f32_to_bf16(bits_to_f32(0xff800001u)) == 0xffc0);
}

int main() {
    RUN(e4m3_codes_have_their_values);
    RUN(e4m3_rounds_to_nearest_and_ties_to_even);
    RUN(e4m3_saturates_and_keeps_nan);
    RUN(bf16_keeps_every_code_and_ties_to_even);
    return check_report();
}
