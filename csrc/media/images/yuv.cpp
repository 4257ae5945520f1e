#include "media/images/yuv.h"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace uform {
namespace {

constexpr size_t planes_k = 3;

struct freed_t {
    void operator()(uint8_t *memory) const noexcept { std::free(memory); }
};

struct plane_t {
    resize_axis_t across, down;

    plane_t(yuv_picture_t const &picture, size_t plane, picture_t stored) noexcept {
        // Half a pixel of colour may lie beyond the picture.
        double const share = plane ? 0.5 : 1;
        across = resize_axis_t(picture.columns(plane), picture.size.width * share, stored.width);
        down = resize_axis_t(picture.rows(plane), picture.size.height * share, stored.height);
    }
    uint64_t columns_bytes() const noexcept { return resize_columns_t::bytes(across, plane_taps_k); }
    uint64_t bytes() const noexcept { return columns_bytes() + resize_sums_t::bytes(across.source); }
};

/** @param[in] levels Of each plane [columns], in 1 / 2^`plane_bits_k`. */
void convert(int16_t const *const (&levels)[planes_k], size_t columns, uint8_t *rgb) noexcept {
    constexpr int bits = 13, shift = bits + int(plane_bits_k), one = 1 << bits, half = 1 << (shift - 1);
    // ITU-R BT.601, with 219 steps of brightness and 224 of colour.
    constexpr double brightness = 255 / 219.0, colour = 255 / 224.0;
    constexpr int from_y = int(brightness * one + 0.5), red_from_v = int(1.402 * colour * one + 0.5),
                  green_from_u = int(0.344136 * colour * one + 0.5), green_from_v = int(0.714136 * colour * one + 0.5),
                  blue_from_u = int(1.772 * colour * one + 0.5);
    auto const level = [](int sum) { return uint8_t(std::clamp(sum >> shift, 0, 255)); };
    for (size_t column = 0; column != columns; ++column, rgb += 3) {
        int const y = (levels[0][column] - (16 << plane_bits_k)) * from_y + half;
        int const u = levels[1][column] - (128 << plane_bits_k), v = levels[2][column] - (128 << plane_bits_k);
        rgb[0] = level(y + red_from_v * v);
        rgb[1] = level(y - green_from_u * u - green_from_v * v);
        rgb[2] = level(y + blue_from_u * u);
    }
}

} // namespace

uint64_t reduce_yuv_bytes(yuv_picture_t const &picture, picture_t target, orientation_t orientation) noexcept {
    picture_t const stored = turned(target, orientation);
    uint64_t const lines = planes_k * (sizeof(int16_t) + sizeof(uint8_t)) * uint64_t(stored.width);
    return plane_t(picture, 0, stored).bytes() + 2 * plane_t(picture, 1, stored).bytes() + lines;
}

bool reduce_yuv(yuv_picture_t const &picture, picture_t target, orientation_t orientation, uint8_t *rgb) noexcept {
    std::unique_ptr<uint8_t, freed_t> const memory(
        static_cast<uint8_t *>(std::calloc(reduce_yuv_bytes(picture, target, orientation), 1)));
    if (!memory) return false;
    picture_t const stored = turned(target, orientation);
    resize_columns_t columns[planes_k];
    resize_sums_t sums[planes_k];
    uint8_t *place = memory.get();
    for (size_t index = 0; index != planes_k; ++index) {
        plane_t const plane(picture, index, stored);
        columns[index].open(plane.across, plane_taps_k, place);
        sums[index].open(plane.down, plane.across.source, place + plane.columns_bytes());
        place += plane.bytes();
    }
    int16_t *const line = reinterpret_cast<int16_t *>(place);
    int16_t *const levels[planes_k] = {line, line + stored.width, line + 2 * size_t(stored.width)};
    uint8_t *const row = reinterpret_cast<uint8_t *>(levels[2] + stored.width);

    oriented_rows_t output(target, orientation, rgb);
    uint8_t const *sources[planes_k] = {picture.planes[0], picture.planes[1], picture.planes[2]};
    for (uint32_t written = 0; written != stored.height; ++written) {
        for (size_t index = 0; index != planes_k; ++index) {
            uint16_t const *finished = nullptr;
            while (!(finished = sums[index].finished())) {
                sums[index].take(sources[index]);
                sources[index] += picture.columns(index);
            }
            columns[index].resize_plane(finished, levels[index]);
            sums[index].next();
        }
        convert({levels[0], levels[1], levels[2]}, stored.width, row);
        output.write(row);
    }
    return true;
}

} // namespace uform
