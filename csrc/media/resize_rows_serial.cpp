/** See resize_rows.h. Plain loops, which compilers turn into vectors of 16 bits. */
#include "media/resize_rows.h"

namespace uform {
namespace {

/** level * weight / 256, in parts that fit 16 bits. */
uint16_t product(uint8_t level, uint16_t weight) noexcept {
    uint16_t const high = uint16_t(level * (weight >> 8)), low = uint16_t(level * (weight & 0xFF));
    return uint16_t(high + (low >> 8));
}

void add(uint8_t const *row, size_t count, uint16_t weight, uint16_t *__restrict sums) noexcept {
    for (size_t index = 0; index != count; ++index) sums[index] = uint16_t(sums[index] + product(row[index], weight));
}

void add_twice(uint8_t const *row, size_t count, uint16_t weight, uint16_t *__restrict sums, uint16_t other_weight,
               uint16_t *__restrict other_sums) noexcept {
    for (size_t index = 0; index != count; ++index) {
        sums[index] = uint16_t(sums[index] + product(row[index], weight));
        other_sums[index] = uint16_t(other_sums[index] + product(row[index], other_weight));
    }
}

void columns(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps, size_t columns,
             uint8_t *to) noexcept {
    // One bit of the sums is left out, for vectors that know signed numbers only.
    constexpr unsigned bits = sum_bits_k - 1 + column_weight_bits_k;
    for (size_t column = 0; column != columns; ++column, weights += taps, to += 3) {
        uint16_t const *const pixels = from + size_t(firsts[column]) * 3;
        int32_t sums[3] = {1 << (bits - 1), 1 << (bits - 1), 1 << (bits - 1)};
        for (size_t tap = 0; tap != taps; ++tap)
            for (size_t channel = 0; channel != 3; ++channel)
                sums[channel] += (pixels[3 * tap + channel] >> 1) * weights[tap];
        for (size_t channel = 0; channel != 3; ++channel) {
            int32_t const level = sums[channel] >> bits;
            to[channel] = uint8_t(level < 255 ? level : 255);
        }
    }
}

void plane_columns(uint16_t const *from, uint32_t const *firsts, int16_t const *weights, size_t taps, size_t columns,
                   int16_t *to) noexcept {
    constexpr unsigned bits = sum_bits_k - 1 + column_weight_bits_k - plane_bits_k;
    for (size_t column = 0; column != columns; ++column, weights += taps) {
        uint16_t const *const pixels = from + firsts[column];
        int32_t sum = 1 << (bits - 1);
        for (size_t tap = 0; tap != taps; ++tap) sum += (pixels[tap] >> 1) * weights[tap];
        to[column] = int16_t(sum >> bits);
    }
}

} // namespace

constinit resize_rows_t const resize_rows_serial = {add, add_twice, columns, plane_columns};

} // namespace uform
