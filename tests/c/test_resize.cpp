/** Resizing, against the triangle filter in double precision, and its loops against each other. */
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "check.h"
#include "media/resize.h"

using namespace uform;

using bytes_t = std::vector<uint8_t>;

static bytes_t noise(picture_t size, unsigned seed) {
    std::mt19937 generator(seed);
    bytes_t pixels(size_t(size.width) * size.height * 3);
    for (uint8_t &level : pixels) level = uint8_t(generator());
    return pixels;
}

static bytes_t resize(bytes_t const &pixels, picture_t from, double width, double height, picture_t to) {
    bytes_t rgb(size_t(to.width) * to.height * 3, 77);
    resizer_t resizer;
    CHECK(resizer.open(from, width, height, to, orientation_t::upright_k, rgb.data()));
    // Rows move to memory of just their length: sanitizers see its ends.
    for (uint32_t row = 0; row != from.height; ++row) {
        auto const first = pixels.begin() + ptrdiff_t(size_t(row) * from.width * 3);
        resizer.take(bytes_t(first, first + ptrdiff_t(from.width) * 3).data());
    }
    return rgb;
}

static bytes_t resize(bytes_t const &pixels, picture_t from, picture_t to) {
    return resize(pixels, from, from.width, from.height, to);
}

/** The weights of `source` pixels, of which `extent` are real, for each of `target`. */
static std::vector<std::vector<double>> triangles(uint32_t source, double extent, uint32_t target) {
    double const scale = extent / target, support = std::max(scale, 1.0);
    std::vector<std::vector<double>> rows(target, std::vector<double>(source));
    for (uint32_t row = 0; row != target; ++row) {
        double sum = 0;
        for (uint32_t pixel = 0; pixel != source; ++pixel)
            sum += rows[row][pixel] = std::max(0.0, 1 - std::fabs(pixel + 0.5 - (row + 0.5) * scale) / support);
        for (double &weight : rows[row]) weight /= sum;
    }
    return rows;
}

static std::vector<double> expected(bytes_t const &pixels, picture_t from, double width, double height, picture_t to) {
    auto const across = triangles(from.width, width, to.width), down = triangles(from.height, height, to.height);
    std::vector<double> narrow(size_t(from.height) * to.width * 3), levels(size_t(to.height) * to.width * 3);
    for (size_t row = 0; row != from.height; ++row)
        for (size_t column = 0; column != to.width; ++column)
            for (size_t pixel = 0; pixel != from.width; ++pixel)
                for (size_t channel = 0; channel != 3; ++channel)
                    narrow[(row * to.width + column) * 3 + channel] +=
                        across[column][pixel] * pixels[(row * from.width + pixel) * 3 + channel];
    for (size_t row = 0; row != to.height; ++row)
        for (size_t pixel = 0; pixel != from.height; ++pixel)
            for (size_t index = 0; index != size_t(to.width) * 3; ++index)
                levels[row * to.width * 3 + index] += down[row][pixel] * narrow[pixel * to.width * 3 + index];
    return levels;
}

static void check_against_doubles(picture_t from, double width, double height, picture_t to) {
    bytes_t const pixels = noise(from, from.width);
    bytes_t const ours = resize(pixels, from, width, height, to);
    std::vector<double> const levels = expected(pixels, from, width, height, to);
    double sum = 0, largest = 0, bias = 0;
    for (size_t index = 0; index != ours.size(); ++index) {
        double const difference = ours[index] - levels[index];
        sum += std::fabs(difference), bias += difference, largest = std::max(largest, std::fabs(difference));
    }
    // Rounding of levels alone gives 0.25 and 0.5, and a bias where many are halves. Enlarging rounds twice.
    bool const enlarges = to.height > height;
    bool const near = largest <= (enlarges ? 1.01 : 0.7) && sum <= 0.36 * double(ours.size()) &&
                      std::fabs(bias) <= (ours.size() > 3000 ? 0.1 : 0.5) * double(ours.size());
    if (!near)
        std::fprintf(stderr, "%u x %u to %u x %u: at most %.3f, mean %.3f, bias %.3f\n", from.width, from.height,
                     to.width, to.height, largest, sum / double(ours.size()), bias / double(ours.size()));
    CHECK(near);
}

static void sizes_equal_the_reference() {
    picture_t const sizes[][2] = {
        {{512, 384}, {224, 224}}, {{257, 193}, {256, 192}}, {{640, 480}, {37, 29}},  {{100, 80}, {100, 40}},
        {{100, 80}, {50, 80}},    {{100, 80}, {250, 190}},  {{100, 80}, {250, 40}},  {{100, 80}, {50, 170}},
        {{3, 5}, {64, 64}},       {{1, 1}, {16, 32}},       {{2, 700}, {16, 3}},     {{700, 2}, {3, 16}},
        {{37, 1000}, {16, 32}},   {{37, 1050}, {16, 32}},   {{900, 1200}, {64, 16}}, {{1, 9000}, {16, 16}},
        {{9000, 1}, {16, 16}},    {{97, 64}, {96, 64}},
    };
    for (auto const &[from, to] : sizes) check_against_doubles(from, from.width, from.height, to);
    // The last column and row are not whole.
    check_against_doubles({129, 97}, 128.25, 96.5, {64, 48});
    check_against_doubles({17, 13}, 16.125, 12.25, {31, 32});
}

static void even_pictures_stay_even() {
    for (int level : {0, 1, 60, 127, 254, 255})
        for (uint32_t height : {1u, 2u, 15u, 224u, 1000u, 2000u, 30000u}) {
            picture_t const from = {5, height};
            bytes_t const rgb = resize(bytes_t(size_t(height) * from.width * 3, uint8_t(level)), from, {7, 15});
            CHECK(std::all_of(rgb.begin(), rgb.end(), [&](int other) { return other == level; }));
        }
    // No weight is lost of many more columns than weights have steps.
    picture_t const wide = {100000, 2};
    bytes_t const rgb = resize(bytes_t(size_t(wide.width) * wide.height * 3, 60), wide, {3, 1});
    CHECK(std::all_of(rgb.begin(), rgb.end(), [](int other) { return other == 60; }));
}

static void same_sizes_are_copies() {
    picture_t const size = {33, 17};
    bytes_t const pixels = noise(size, 1);
    CHECK(resize(pixels, size, size) == pixels);
}

#if defined(__x86_64__)
static void loops_give_the_same_bits() {
    if (!__builtin_cpu_supports("avx2")) {
        std::fprintf(stderr, "no AVX2 here\n");
        return;
    }
    std::mt19937 generator(2);
    for (size_t count : {1u, 3u, 15u, 16u, 17u, 63u, 300u}) {
        bytes_t row(count);
        for (uint8_t &level : row) level = uint8_t(generator());
        for (unsigned weight : {0u, 1u, 255u, 256u, 12345u, 65535u}) {
            std::vector<uint16_t> sums(count, 5), other_sums(count, 9);
            auto fast_sums = sums, fast_other_sums = other_sums;
            uint16_t const other_weight = uint16_t(65535 - weight);
            resize_rows_serial.add(row.data(), count, uint16_t(weight), sums.data());
            resize_rows_haswell.add(row.data(), count, uint16_t(weight), fast_sums.data());
            CHECK(sums == fast_sums && sums[0] == uint16_t(5 + row[0] * weight / 256));
            resize_rows_serial.add_twice(row.data(), count, uint16_t(weight), sums.data(), other_weight,
                                         other_sums.data());
            resize_rows_haswell.add_twice(row.data(), count, uint16_t(weight), fast_sums.data(), other_weight,
                                          fast_other_sums.data());
            CHECK(sums == fast_sums && other_sums == fast_other_sums);
        }
    }
    for (size_t taps : {4u, 8u, 20u, 24u}) {
        size_t const columns = 50, pixels = 70;
        std::vector<uint16_t> from(pixels * 3 + sums_padding_k);
        for (uint16_t &sum : from) sum = uint16_t(generator());
        std::vector<uint32_t> firsts(columns);
        std::vector<int16_t> weights(columns * taps);
        for (size_t column = 0; column != columns; ++column) {
            firsts[column] = uint32_t(generator() % (pixels - taps + column_taps_k));
            int left = 1 << column_weight_bits_k;
            for (size_t tap = 0; tap + 1 != taps; ++tap) {
                weights[column * taps + tap] = int16_t(generator() % unsigned(left + 1) / 2);
                left -= weights[column * taps + tap];
            }
            weights[column * taps + taps - 1] = int16_t(left);
        }
        bytes_t serial(columns * 3 + levels_padding_k), fast = serial;
        resize_rows_serial.columns(from.data(), firsts.data(), weights.data(), taps, columns, serial.data());
        resize_rows_haswell.columns(from.data(), firsts.data(), weights.data(), taps, columns, fast.data());
        serial.resize(columns * 3), fast.resize(columns * 3);
        CHECK(serial == fast);

        if (taps % plane_taps_k) continue;
        for (size_t some : {1u, 2u, 3u, 4u, 5u, 50u}) {
            std::vector<int16_t> plane(some), fast_plane(some);
            resize_rows_serial.plane_columns(from.data(), firsts.data(), weights.data(), taps, some, plane.data());
            resize_rows_haswell.plane_columns(from.data(), firsts.data(), weights.data(), taps, some,
                                              fast_plane.data());
            CHECK(plane == fast_plane);
        }
    }
}
#endif

int main() {
    RUN(sizes_equal_the_reference);
    RUN(even_pictures_stay_even);
    RUN(same_sizes_are_copies);
#if defined(__x86_64__)
    RUN(loops_give_the_same_bits);
#endif
    return check_report();
}
