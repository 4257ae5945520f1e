/** Any bytes as a picture. Seeds: the files of tests/media_files.py. */
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <libdeflate.h>

#include "media/codecs.h"

using namespace uform;

extern "C" size_t LLVMFuzzerMutate(uint8_t *data, size_t length, size_t most);

static uint32_t u32(uint8_t const *data) {
    return uint32_t(data[0]) << 24 | uint32_t(data[1]) << 16 | uint32_t(data[2]) << 8 | data[3];
}

static void put(uint8_t *data, uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) *data++ = uint8_t(value >> shift);
}

/** Chunks of PNG get checks that fit, and rows of pixels in stored blocks theirs: else no change would get through. */
extern "C" size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t length, size_t most, unsigned seed) {
    length = LLVMFuzzerMutate(data, length, most);
    if (seed % 8 == 0 || length < 8 || std::memcmp(data, "\x89PNG\r\n\x1A\n", 8)) return length;
    for (size_t place = 8; length - place >= 12;) {
        size_t const body = std::min<size_t>(u32(data + place), length - place - 12);
        put(data + place, uint32_t(body));
        uint8_t *const chunk = data + place + 8;
        // A stream of one stored block: two bytes, five bytes, the rows, their sum.
        if (!std::memcmp(chunk - 4, "IDAT", 4) && body > 11 && chunk[2] == 1) {
            chunk[3] = uint8_t(body - 11), chunk[4] = uint8_t((body - 11) >> 8);
            chunk[5] = uint8_t(~chunk[3]), chunk[6] = uint8_t(~chunk[4]);
            put(chunk + body - 4, libdeflate_adler32(1, chunk + 7, body - 11));
        }
        put(chunk + body, libdeflate_crc32(0, chunk - 4, body + 4));
        place += 12 + body;
    }
    return length;
}

extern "C" int LLVMFuzzerTestOneInput(uint8_t const *data, size_t length) {
    images_codecs_t const &codecs = *uform_images_codecs();
    file_t const file {data, length};
    limits_t limits;
    limits.pixels = 1 << 18, limits.bytes = 1 << 26;

    fault_t fault;
    picture_t picture;
    uform_status_t status = codecs.probe(file, limits, picture, fault);
    if (status && (fault.status != status || !fault.message[0])) std::abort();
    bool const is_probed = !status;
    if (is_probed && uint64_t(picture.width) * picture.height > limits.pixels) std::abort();

    // Smaller and larger than most pictures. What is not probed is not decoded either.
    for (picture_t const size : {picture_t {17, 9}, picture_t {40, 230}}) {
        std::vector<uint8_t> rgb(size_t(size.width) * size.height * 3);
        fault = {};
        status = codecs.decode(file, limits, size, rgb.data(), fault);
        if (status && (fault.status != status || !fault.message[0])) std::abort();
        if (!status && !is_probed) std::abort();
    }
    return 0;
}
