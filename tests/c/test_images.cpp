/**
 *  Decoding of pictures: `test_images FOLDER`, with the files of tests/media_files.py.
 *  `test_images --decode FILE WIDTH HEIGHT OUTPUT` decodes one to that size, or to its own where they are 0, and prints
 *  the size; a failure's status and message otherwise. `test_images --measure FILE WIDTH HEIGHT` prints milliseconds.
 */
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "media/codecs.h"
#include "media/images/png_unfilter.h"

using namespace uform;

static images_codecs_t const &codecs = *uform_images_codecs();
static std::string folder;

using bytes_t = std::vector<uint8_t>;

static bytes_t read_path(std::string const &path) {
    std::ifstream input(path, std::ios::binary);
    if (!input) std::fprintf(stderr, "cannot read %s\n", path.c_str()), std::exit(EXIT_FAILURE);
    return {std::istreambuf_iterator<char>(input), std::istreambuf_iterator<char>()};
}

static bytes_t read_file(std::string const &name) { return read_path(folder + "/" + name); }

/** Where the bytes are found first. */
static size_t find(bytes_t const &bytes, bytes_t const &wanted) {
    return size_t(std::search(bytes.begin(), bytes.end(), wanted.begin(), wanted.end()) - bytes.begin());
}

struct decoded_t {
    uform_status_t status = uform_success_k;
    fault_t fault;
    picture_t size;
    bytes_t rgb;

    int level(size_t column, size_t row, size_t channel = 0) const {
        return rgb[(row * size.width + column) * 3 + channel];
    }
    bool is(size_t column, size_t row, int red, int green, int blue, int tolerance = 0) const {
        return std::abs(level(column, row, 0) - red) <= tolerance &&
               std::abs(level(column, row, 1) - green) <= tolerance &&
               std::abs(level(column, row, 2) - blue) <= tolerance;
    }
    /** Whether all pixels are grey, between the two levels. */
    bool is_even(int lowest, int highest) const {
        return std::all_of(rgb.begin(), rgb.end(), [&](int level) { return level >= lowest && level <= highest; });
    }
};

/** To a size, or to the picture's own. The bytes are moved to memory of just their length: sanitizers see its ends. */
static decoded_t decode(bytes_t const &bytes, picture_t size = {}, limits_t limits = {}) {
    bytes_t const exact(bytes.begin(), bytes.end());
    file_t const file {exact.data(), exact.size()};
    decoded_t decoded;
    decoded.status = codecs.probe(file, limits, decoded.size, decoded.fault);
    if (decoded.status) return decoded;
    if (size.width) decoded.size = size;
    decoded.rgb.assign(size_t(decoded.size.width) * decoded.size.height * 3, 77);
    decoded.status = codecs.decode(file, limits, decoded.size, decoded.rgb.data(), decoded.fault);
    return decoded;
}

static decoded_t decode(std::string const &name, picture_t size = {}) {
    decoded_t const decoded = decode(read_file(name), size);
    if (decoded.status) std::fprintf(stderr, "%s: %s\n", name.c_str(), decoded.fault.message);
    CHECK(!decoded.status);
    return decoded;
}

static double distance(decoded_t const &a, decoded_t const &b) {
    CHECK(a.rgb.size() == b.rgb.size() && a.size.width == b.size.width);
    double sum = 0;
    for (size_t index = 0; index != a.rgb.size(); ++index) sum += std::abs(a.rgb[index] - b.rgb[index]);
    return sum / double(a.rgb.size());
}

static char const *const suffixes[] = {".jpg", ".png", ".webp"};

static void greys_are_of_every_depth() {
    for (int depth : {1, 2, 4, 8, 16})
        for (char const *kind : {"", "_interlaced", "_key"}) {
            decoded_t const ramp = decode("grey_" + std::to_string(depth) + kind + ".png");
            int const levels = std::min(1 << depth, 256);
            CHECK(ramp.size.width == uint32_t(levels));
            for (uint32_t row = 0; row != ramp.size.height; ++row)
                for (int column = 0; column != levels; ++column) {
                    int const level = *kind == '_' && kind[1] == 'k' && !column ? 255 : column * 255 / (levels - 1);
                    CHECK(ramp.is(size_t(column), row, level, level, level));
                }
        }
}

static void sixteen_bits_are_rounded() {
    int const expected[] = {0, 0, 1, 1, 127, 128, 254, 255, 255};
    for (char const *name : {"rounding_16.png", "rgb_16.png"}) {
        decoded_t const levels = decode(name);
        for (size_t column = 0; column != 9; ++column)
            CHECK(levels.is(column, 0, expected[column], expected[column], expected[column]));
    }
}

static void palettes_are_looked_up() {
    for (char const *name : {"palette_2", "palette_4", "palette_8"})
        for (char const *kind : {".png", "_interlaced.png"}) {
            decoded_t const palette = decode(std::string(name) + kind);
            for (uint32_t row = 0; row != palette.size.height; ++row) {
                CHECK(palette.is(1, row, 255, 0, 0));
                CHECK(palette.is(6, row, 0, 255, 0));
                CHECK(palette.is(9, row, 0, 0, 255));
                CHECK(palette.is(15, row, 128, 128, 128));
            }
        }
    decoded_t const two = decode("palette_1.png");
    CHECK(two.is(0, 0, 255, 255, 255) && two.is(1, 0, 40, 50, 60) && two.is(2, 0, 40, 50, 60));
}

static void alpha_is_over_white() {
    for (char const *name : {"alpha_8.png", "alpha_16.png", "alpha.webp"}) {
        decoded_t const red = decode(name);
        CHECK(red.is(0, 0, 255, 255, 255));
        CHECK(red.is(1, 0, 255, 204, 204));
        CHECK(red.is(2, 0, 255, 0, 0));
    }
    for (char const *name : {"grey_alpha_8.png", "grey_alpha_16.png"}) {
        decoded_t const black = decode(name);
        CHECK(black.is(0, 0, 255, 255, 255) && black.is(1, 0, 204, 204, 204) && black.is(2, 0, 0, 0, 0));
    }
    for (char const *name : {"rgb_key_8.png", "rgb_key_16.png"}) {
        decoded_t const keyed = decode(name);
        CHECK(keyed.is(0, 0, 255, 255, 255) && keyed.is(1, 0, 3, 2, 1) && keyed.is(2, 0, 1, 2, 4));
    }
    CHECK(decode("alpha_lossy.webp").is_even(126, 130));
}

static void inks_are_mixed() {
    for (char const *name : {"cmyk.jpg", "ycck.jpg"}) {
        decoded_t const inks = decode(name);
        CHECK(inks.is(3, 8, 255, 0, 0, 3));
        CHECK(inks.is(28, 8, 0, 0, 0, 3));
    }
    // Without Adobe's marker, inks are inverted just as well.
    bytes_t cmyk = read_file("cmyk.jpg");
    auto const adobe = cmyk.begin() + ptrdiff_t(find(cmyk, {0xFF, 0xEE}));
    cmyk.erase(adobe, adobe + 16);
    CHECK(decode(cmyk).is(3, 8, 255, 0, 0, 3));
}

static void pictures_are_upright() {
    auto const expected = [](decoded_t const &stored, int orientation) {
        bool const swaps = orientation > 4;
        uint32_t const width = stored.size.width, height = stored.size.height;
        decoded_t viewed;
        viewed.size = swaps ? picture_t {height, width} : stored.size;
        viewed.rgb.resize(stored.rgb.size());
        for (uint32_t row = 0; row != height; ++row)
            for (uint32_t column = 0; column != width; ++column) {
                uint32_t const right = width - 1 - column, bottom = height - 1 - row;
                uint32_t const columns[] = {column, right, right, column, row, bottom, bottom, row};
                uint32_t const rows[] = {row, row, bottom, bottom, column, column, right, right};
                size_t const to = size_t(rows[orientation - 1]) * viewed.size.width + columns[orientation - 1];
                std::memcpy(&viewed.rgb[to * 3], &stored.rgb[(size_t(row) * width + column) * 3], 3);
            }
        return viewed;
    };
    for (char const *kind : {"_intel.jpg", "_motorola.jpg", ".png", ".webp"}) {
        decoded_t const stored = decode(std::string("turned_1") + kind);
        for (int orientation = 1; orientation <= 8; ++orientation) {
            std::string const name = "turned_" + std::to_string(orientation) + kind;
            decoded_t const turned = decode(name), viewed = expected(stored, orientation);
            CHECK(turned.size.width == viewed.size.width && turned.rgb == viewed.rgb);
            // Resized, the picture is the same to rounding, whichever way its rows go.
            picture_t const size = orientation > 4 ? picture_t {11, 20} : picture_t {20, 11};
            CHECK(distance(decode(name, size),
                           expected(decode(std::string("turned_1") + kind, {20, 11}), orientation)) < 0.3);
        }
    }
    CHECK(decode("turned_9_intel.jpg").rgb == decode("turned_1_intel.jpg").rgb);
}

static void codings_make_no_difference() {
    decoded_t const jpeg = decode("photo_420.jpg"), png = decode("photo.png");
    for (char const *name : {"photo_progressive.jpg", "photo_optimized.jpg", "photo_restarts.jpg"}) {
        CHECK(decode(name).rgb == jpeg.rgb);
        CHECK(decode(name, {80, 60}).rgb == decode("photo_420.jpg", {80, 60}).rgb);
    }
    for (char const *name : {"photo_pieces.png", "photo_interlaced.png", "photo_lossless.webp"})
        CHECK(decode(name).rgb == png.rgb);
    CHECK(decode("odd.png").rgb == decode("odd_interlaced.png").rgb);
    for (char const *kind : {"paeth_0", "paeth_2", "paeth_4", "paeth_6", "noise_0_8", "noise_0_16", "noise_2_8",
                             "noise_2_16", "noise_4_8", "noise_4_16", "noise_6_8", "noise_6_16", "stored_1_0",
                             "stored_2_3", "stored_16_4", "stored_8_2", "stored_8_6"})
        CHECK(decode(std::string(kind) + ".png").rgb == decode(std::string(kind) + "_interlaced.png").rgb);
    // Compression loses little.
    for (char const *name : {"photo_420.jpg", "photo_422.jpg", "photo_444.jpg", "photo_rgb.jpg", "photo.webp"})
        CHECK(distance(decode(name), png) < 5);
    for (char const *name : {"odd_420.jpg", "odd_422.jpg", "odd_444.jpg", "odd.webp"})
        for (picture_t size :
             {picture_t {}, picture_t {79, 58}, picture_t {158, 117}, picture_t {39, 29}, picture_t {3, 5}})
            CHECK(distance(decode(name, size), decode("odd.png", size)) < 5);
}

static void animations_are_their_first_frame() {
    for (char const *name : {"animation.png", "animation.webp"}) {
        decoded_t const animation = decode(name);
        for (uint32_t row = 0; row != 8; ++row)
            for (uint32_t column = 0; column != 8; ++column) CHECK(animation.is(column, row, 255, 0, 0));
    }
    for (char const *name : {"animation_apart.png", "animation_apart.webp"}) {
        decoded_t const animation = decode(name);
        for (uint32_t row = 0; row != 8; ++row)
            for (uint32_t column = 0; column != 8; ++column) {
                int const other = row >= 2 && row < 6 && column >= 2 && column < 6 ? 0 : 255;
                CHECK(animation.is(column, row, 255, other, other));
            }
    }
}

static void shapes_are_of_any_kind() {
    for (char const *suffix : suffixes)
        for (char const *shape : {"1x1", "3x1", "1x3", "1x16000", "16000x1", "17x17"}) {
            std::string const name = std::string("size_") + shape + suffix;
            decoded_t const own = decode(name);
            CHECK(std::to_string(own.size.width) + "x" + std::to_string(own.size.height) == shape);
            CHECK(own.is_even(59, 61));
            for (picture_t size : {picture_t {1, 1}, picture_t {16, 3136}, picture_t {3136, 16}, picture_t {224, 224}})
                CHECK(decode(name, size).is_even(59, 61));
        }
    CHECK(decode("size_1x20000.png", {16, 3136}).is_even(60, 60));
}

static void fine_patterns_are_averaged() {
    for (char const *suffix : suffixes)
        for (picture_t size : {picture_t {32, 32}, picture_t {128, 128}, picture_t {100, 50}, picture_t {8, 64}})
            CHECK(decode(std::string("checkerboard") + suffix, size).is_even(124, 131));
    for (char const *suffix : suffixes) CHECK(decode(std::string("checkerboard") + suffix, {32, 32}).is_even(127, 128));
}

static void other_formats_are_refused() {
    struct {
        char const *file, *name;
    } const others[] = {{"gif", "GIF"},   {"bmp", "BMP"},  {"tiff", "TIFF"}, {"ico", "ICO"}, {"jpeg2000", "JPEG 2000"},
                        {"avif", "AVIF"}, {"ppm", "JPEG"}, {"txt", "JPEG"},  {"svg", "SVG"}, {"html", "HTML"}};
    for (auto const &other : others) {
        decoded_t const decoded = decode(read_file(std::string("other.") + other.file));
        CHECK(decoded.status == uform_unsupported_layout_k);
        CHECK(std::strstr(decoded.fault.message, other.name));
    }
    CHECK(decode(bytes_t()).status == uform_malformed_k);
    for (char const *start : {"\xFF", "\xFF\xD8", "\x89PNG", "RIFF", "RIFF\1\2\3\4WE"})
        CHECK(decode(bytes_t(start, start + std::strlen(start))).status == uform_malformed_k);
    CHECK(decode(bytes_t {'R', 'I', 'F', 'F', 0, 0, 0, 0, 'W', 'A', 'V', 'E'}).status == uform_unsupported_layout_k);

    // Arithmetic coding, lossless coding, and 12 bits, as the frame's header tells.
    bytes_t const jpeg = read_file("photo_420.jpg");
    size_t const frame = find(jpeg, {0xFF, 0xC0});
    for (auto [offset, value] : {std::pair {1, 0xC9}, std::pair {1, 0xC3}, std::pair {4, 12}}) {
        bytes_t other = jpeg;
        other[frame + size_t(offset)] = uint8_t(value);
        CHECK(decode(other).status == uform_unsupported_layout_k);
    }
}

static void limits_are_kept() {
    limits_t limits;
    for (char const *name :
         {"photo_420.jpg", "photo_progressive.jpg", "photo.png", "photo_interlaced.png", "photo.webp"}) {
        bytes_t const file = read_file(name);
        limits = {};
        limits.pixels = 320 * 240;
        CHECK(!decode(file, {}, limits).status);
        limits.pixels = 320 * 240 - 1;
        CHECK(decode(file, {}, limits).status == uform_malformed_k);
        limits = {};
        limits.bytes = 1000;
        CHECK(decode(file, {16, 16}, limits).status == uform_malformed_k);
    }
}

/** Writes a number of two or four bytes, the greatest first. */
static void put(bytes_t &bytes, size_t offset, uint32_t value, size_t length) {
    for (size_t index = 0; index != length; ++index) bytes[offset + index] = uint8_t(value >> 8 * (length - 1 - index));
}

static void claims_are_checked() {
    // Without a check sum that fits, the claim would not be looked at.
    auto const png_of = [](uint32_t width, uint32_t height) {
        bytes_t png = read_file("size_17x17.png");
        put(png, 16, width, 4), put(png, 20, height, 4);
        uint32_t check = ~0u;
        for (size_t index = 12; index != 29; ++index) {
            check ^= png[index];
            for (int bit = 0; bit != 8; ++bit) check = check >> 1 ^ (check & 1 ? 0xEDB88320u : 0);
        }
        put(png, 29, ~check, 4);
        return png;
    };
    auto const jpeg_of = [](char const *name, uint8_t marker, uint32_t width, uint32_t height) {
        bytes_t jpeg = read_file(name);
        size_t const offset = find(jpeg, {0xFF, marker});
        put(jpeg, offset + 5, height, 2), put(jpeg, offset + 7, width, 2);
        return jpeg;
    };
    for (auto [width, height] : {std::pair {65500u, 65500u}, std::pair {16384u, 16384u}, std::pair {0u, 17u}}) {
        for (bytes_t const &file : {png_of(width, height), jpeg_of("size_17x17.jpg", 0xC0, width, height),
                                    jpeg_of("photo_progressive.jpg", 0xC2, width, height)}) {
            auto const start = std::chrono::steady_clock::now();
            CHECK(decode(file, {16, 16}).status == uform_malformed_k);
            CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(1));
        }
    }
    CHECK(decode(png_of(0x80000000u, 1)).status == uform_malformed_k);
    CHECK(decode(png_of(0xFFFFFFFFu, 0xFFFFFFFFu)).status == uform_malformed_k);
    // A canvas of 16 million by 16 million, and a picture of 16383 by 16383 of a few bytes.
    bytes_t webp = read_file("animation_apart.webp");
    std::fill(webp.begin() + 24, webp.begin() + 30, uint8_t(0xFF));
    CHECK(decode(webp, {16, 16}).status == uform_malformed_k);
    webp = read_file("photo.webp");
    size_t const frame = find(webp, {0x9D, 0x01, 0x2A});
    std::memcpy(&webp[frame + 3], "\xFF\x3F\xFF\x3F", 4);
    CHECK(decode(webp, {16, 16}).status == uform_malformed_k);
}

static void truncated_files_are_malformed() {
    for (char const *name :
         {"photo_420.jpg", "photo_progressive.jpg", "photo_restarts.jpg", "turned_6_intel.jpg", "cmyk.jpg", "photo.png",
          "photo_interlaced.png", "photo_pieces.png", "turned_6.png", "palette_4.png", "animation_apart.png",
          "photo.webp", "photo_lossless.webp", "alpha_lossy.webp", "turned_6.webp", "animation.webp"}) {
        bytes_t const whole = read_file(name);
        size_t const step = std::max<size_t>(1, whole.size() / 100);
        // All cuts near both ends, and some between.
        for (size_t length = 0; length < whole.size();
             length += length < 64 || whole.size() - length < 64 ? 1 : std::min(step, whole.size() - 63 - length)) {
            bytes_t const part(whole.begin(), whole.begin() + ptrdiff_t(length));
            decoded_t const decoded = decode(part, {20, 15});
            if (decoded.status != uform_malformed_k)
                std::fprintf(stderr, "%s, %zu of %zu bytes: %d\n", name, length, whole.size(), decoded.status);
            CHECK(decoded.status == uform_malformed_k);
            CHECK(decoded.fault.status == uform_malformed_k && decoded.fault.message[0]);
        }
    }
}

static void broken_files_do_no_harm() {
    for (char const *name : {"photo_420.jpg", "photo_progressive.jpg", "odd_444.jpg", "cmyk.jpg", "photo.png",
                             "odd_interlaced.png", "palette_4.png", "animation_apart.png", "photo.webp",
                             "photo_lossless.webp", "alpha_lossy.webp", "animation_apart.webp"}) {
        bytes_t const whole = read_file(name);
        uint32_t random = 1;
        auto const next = [&] { return random = random * 1664525u + 1013904223u, random >> 8; };
        for (size_t round = 0; round != 150; ++round) {
            bytes_t broken = whole;
            // Half of them where the headers are.
            size_t const reach = round % 2 ? std::min<size_t>(whole.size(), 700) : whole.size();
            for (size_t count = 0; count != 1 + round % 3; ++count) broken[next() % reach] ^= uint8_t(1u << next() % 8);
            limits_t limits;
            limits.pixels = 1 << 22;
            decoded_t const decoded = decode(broken, {20, 15}, limits);
            CHECK(!decoded.status || decoded.status == decoded.fault.status);
            CHECK(!decoded.status || decoded.fault.message[0]);
            // Chunks of PNG have checks. Those of an animation that are not shown are not compared.
            if (std::strstr(name, ".png") && !std::strstr(name, "animation")) CHECK(decoded.status || broken == whole);
        }
    }
}

static void ends_and_padding_of_jpeg() {
    bytes_t const whole = read_file("photo_420.jpg");
    bytes_t padded = whole;
    padded.insert(padded.end() - 2, 5, 0);
    CHECK(decode(padded).rgb == decode(whole).rgb);
    // Bytes after the end are another matter: cameras put a second picture there.
    padded = whole;
    padded.insert(padded.end(), {1, 2, 3});
    CHECK(decode(padded).rgb == decode(whole).rgb);
    bytes_t damaged = whole;
    damaged.insert(damaged.end() - 2, {1, 2, 3});
    CHECK(decode(damaged).status == uform_malformed_k);
}

static void scans_are_bounded() {
    CHECK(decode("scans_442.jpg").is_even(128, 128));
    CHECK(decode(read_file("scans_568.jpg")).status == uform_malformed_k);
    // Together they may visit as many blocks as a picture may have pixels.
    limits_t limits;
    limits.pixels = 441;
    CHECK(decode(read_file("scans_442.jpg"), {}, limits).status == uform_malformed_k);
}

static void threads_share_nothing() {
    std::vector<bytes_t> files, expected;
    for (char const *name : {"photo_420.jpg", "photo_progressive.jpg", "photo.png", "photo.webp", "other.gif"})
        files.push_back(read_file(name)), expected.push_back(decode(files.back(), {64, 48}).rgb);
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int &count : wrong)
        threads.emplace_back([&] {
            for (int round = 0; round != 10; ++round)
                for (size_t index = 0; index != files.size(); ++index)
                    count += decode(files[index], {64, 48}).rgb != expected[index];
        });
    for (std::thread &thread : threads) thread.join();
    CHECK(std::count(wrong.begin(), wrong.end(), 0) == 4);
}

static int decode_one(char **arguments) {
    picture_t const size = {uint32_t(std::atoi(arguments[1])), uint32_t(std::atoi(arguments[2]))};
    decoded_t const decoded = decode(read_path(arguments[0]), size);
    if (decoded.status) return std::printf("%d %s\n", decoded.status, decoded.fault.message), 0;
    std::ofstream(arguments[3], std::ios::binary)
        .write(reinterpret_cast<char const *>(decoded.rgb.data()), std::streamsize(decoded.rgb.size()));
    return std::printf("%u %u\n", decoded.size.width, decoded.size.height), 0;
}

static int measure(char **arguments) {
    bytes_t const bytes = read_path(arguments[0]);
    picture_t const size = {uint32_t(std::atoi(arguments[1])), uint32_t(std::atoi(arguments[2]))};
    std::vector<double> rounds;
    for (int round = 0; round != 25; ++round) {
        auto const start = std::chrono::steady_clock::now();
        decode(bytes, size);
        rounds.push_back(std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count());
    }
    std::sort(rounds.begin(), rounds.end());
    return std::printf("%.3f ms, at the best %.3f\n", rounds[12], rounds[0]), 0;
}

/** Rows that are unfiltered together are what they are one by one. */
static void filters_are_undone_together() {
    std::mt19937 generator(1);
    for (size_t pixel_bytes : {1u, 2u, 3u, 4u, 6u})
        for (size_t columns : {1u, 3u, 4u, 5u, 50u})
            for (int round = 0; round != 20; ++round) {
                size_t const count = columns * pixel_bytes, stride = count + 1;
                bytes_t lines(png_rows_together_k * stride + png_padding_k), above(count + png_padding_k);
                for (uint8_t &byte : lines) byte = uint8_t(generator());
                for (uint8_t &byte : above) byte = uint8_t(generator());
                for (size_t row = 0; row != png_rows_together_k; ++row)
                    lines[row * stride] = uint8_t(generator() % 2 ? 4 : generator() % 5);
                bytes_t together = lines;
                if (!unfilter_png_together(together.data(), stride, above.data(), pixel_bytes)) {
                    CHECK(together == lines);
                    continue;
                }
                for (size_t row = 0; row != png_rows_together_k; ++row) {
                    uint8_t *const line = lines.data() + row * stride;
                    uint8_t const *const before = row ? line - stride + 1 : above.data();
                    CHECK(unfilter_png(line[0], line + 1, before, count, pixel_bytes));
                    CHECK(std::equal(line + 1, line + stride, together.data() + row * stride + 1));
                }
            }
    // One that does not exist.
    bytes_t lines(png_rows_together_k * 31 + png_padding_k, 4);
    lines[2 * 31] = 5;
    bytes_t const above(30 + png_padding_k), before = lines;
    CHECK(!unfilter_png_together(lines.data(), 31, above.data(), 3) && lines == before);
}

int main(int count, char **arguments) {
    if (count == 6 && !std::strcmp(arguments[1], "--decode")) return decode_one(arguments + 2);
    if (count == 5 && !std::strcmp(arguments[1], "--measure")) return measure(arguments + 2);
    if (count != 2) return std::fprintf(stderr, "usage: %s FOLDER\n", arguments[0]), 2;
    folder = arguments[1];
    RUN(greys_are_of_every_depth);
    RUN(sixteen_bits_are_rounded);
    RUN(palettes_are_looked_up);
    RUN(alpha_is_over_white);
    RUN(inks_are_mixed);
    RUN(pictures_are_upright);
    RUN(codings_make_no_difference);
    RUN(animations_are_their_first_frame);
    RUN(shapes_are_of_any_kind);
    RUN(fine_patterns_are_averaged);
    RUN(other_formats_are_refused);
    RUN(limits_are_kept);
    RUN(claims_are_checked);
    RUN(truncated_files_are_malformed);
    RUN(broken_files_do_no_harm);
    RUN(ends_and_padding_of_jpeg);
    RUN(scans_are_bounded);
    RUN(filters_are_undone_together);
    RUN(threads_share_nothing);
    return check_report();
}
