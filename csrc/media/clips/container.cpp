#include "media/clips/container.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "media/fault.h"

namespace uform {
namespace {

/** Every edit of a track may list all of its samples again. */
constexpr uint64_t most_track_edits_k = 256;
constexpr int most_box_depth_k = 8;

uint64_t big_endian(uint8_t const *bytes, size_t count) noexcept {
    uint64_t value = 0;
    for (size_t index = 0; index != count; ++index) value = value << 8 | bytes[index];
    return value;
}

uint64_t little_endian(uint8_t const *bytes, size_t count) noexcept {
    uint64_t value = 0;
    for (size_t index = count; index-- != 0;) value = value << 8 | bytes[index];
    return value;
}

bool starts(file_t file, size_t offset, char const *name) noexcept {
    size_t const length = std::strlen(name);
    return offset <= file.length && file.length - offset >= length && !std::memcmp(file.data + offset, name, length);
}

bool one_of(uint8_t const *type, std::initializer_list<char const *> names) noexcept {
    return std::any_of(names.begin(), names.end(), [&](char const *name) { return !std::memcmp(type, name, 4); });
}

uform_status_t truncated(fault_t &fault, char const *part) noexcept {
    return refuse(fault, uform_malformed_k, "truncated: its %s is longer than the file", part);
}

// ISO/IEC 14496-12: boxes of a size, a type and contents.

/** The contents of the box of a type among `boxes`, without its version and flags. */
file_t table(file_t boxes, char const *type) noexcept {
    for (size_t offset = 0; boxes.length - offset >= 12;) {
        uint64_t const size = big_endian(boxes.data + offset, 4);
        if (size < 12 || size > boxes.length - offset) break;
        if (starts(boxes, offset + 4, type)) return {boxes.data + offset + 12, size_t(size) - 12};
        offset += size_t(size);
    }
    return {};
}

/** How many samples the tables of a track claim. */
uint64_t claimed_samples(file_t boxes) noexcept {
    uint64_t samples = 0;
    for (char const *type : {"stsz", "stz2"})
        if (file_t const sizes = table(boxes, type); sizes.length >= 8)
            samples = std::max(samples, big_endian(sizes.data + 4, 4));
    uint64_t chunks = 0;
    for (char const *type : {"stco", "co64"})
        if (file_t const offsets = table(boxes, type); offsets.length >= 4)
            chunks = std::max(chunks, std::min<uint64_t>(big_endian(offsets.data, 4), offsets.length / 4));
    file_t const runs = table(boxes, "stsc");
    if (runs.length < 4) return samples;
    size_t const count = std::min<size_t>(big_endian(runs.data, 4), (runs.length - 4) / 12);
    uint64_t in_chunks = 0;
    for (size_t index = 0; index != count && in_chunks <= UINT32_MAX; ++index) {
        uint8_t const *const run = runs.data + 4 + 12 * index;
        uint64_t const first = big_endian(run, 4);
        uint64_t const end = index + 1 != count ? std::min(chunks + 1, big_endian(run + 12, 4)) : chunks + 1;
        if (end > first) in_chunks += std::min<uint64_t>(end - first, UINT32_MAX) * big_endian(run + 4, 4);
    }
    return std::max(samples, in_chunks);
}

/** All samples together cannot be more than the file's bytes, however few bytes it takes to claim them. */
uform_status_t check_boxes(file_t file, int depth, uint64_t &samples_left, fault_t &fault) noexcept {
    size_t offset = 0;
    while (file.length - offset >= 8) {
        size_t const left = file.length - offset;
        uint8_t const *const box = file.data + offset, *const type = box + 4;
        uint64_t size = big_endian(box, 4);
        size_t header = 8;
        if (size == 1 && left >= 16) size = big_endian(box + 8, 8), header = 16;
        else if (size == 0) size = left;
        if (size < header || size > left) {
            // What follows the last box is no matter, unless it is one that is cut, as its name tells.
            bool const named =
                std::all_of(type, type + 4, [](uint8_t letter) { return letter >= 'a' && letter <= 'z'; });
            return named ? truncated(fault, "last box") : uform_success_k;
        }
        file_t const contents {box + header, size_t(size) - header};
        uint64_t samples = 0;
        if (one_of(type, {"stbl"})) samples = claimed_samples(contents);
        else if (one_of(type, {"trun"}) && contents.length >= 8) samples = big_endian(contents.data + 4, 4);
        if (samples > samples_left)
            return refuse(fault, uform_malformed_k, "its tracks claim more samples than the file has bytes");
        samples_left -= samples;
        if (one_of(type, {"elst"}) && contents.length >= 8 && big_endian(contents.data + 4, 4) > most_track_edits_k)
            return refuse(fault, uform_malformed_k, "a track is edited more than %llu times",
                          static_cast<unsigned long long>(most_track_edits_k));
        if (one_of(type, {"moov", "trak", "mdia", "minf", "edts", "moof", "traf"}) && depth < most_box_depth_k)
            if (uform_status_t const status = check_boxes(contents, depth + 1, samples_left, fault)) return status;
        offset += size_t(size);
    }
    return depth == 0 && offset != file.length ? truncated(fault, "last box") : uform_success_k;
}

// RFC 8794: elements of an identifier, a size and contents, the first two of variable length.

uform_status_t check_matroska(file_t file, fault_t &fault) noexcept {
    size_t offset = 0;
    while (offset < file.length) {
        size_t const identifier_length = size_t(__builtin_clz(file.data[offset] | 1u)) - 23;
        if (file.length - offset <= identifier_length) break;
        uint64_t const identifier = big_endian(file.data + offset, identifier_length);
        offset += identifier_length;
        size_t const size_length = size_t(__builtin_clz(file.data[offset] | 1u)) - 23;
        if (size_length > 8 || file.length - offset < size_length) break;
        uint64_t const unknown = (uint64_t(1) << 7 * size_length) - 1;
        uint64_t const size = big_endian(file.data + offset, size_length) & unknown;
        offset += size_length;
        constexpr uint64_t segment_k = 0x18538067;
        if (size == unknown) return uform_success_k; // Streamed: it ends with the file.
        if (size > file.length - offset) return truncated(fault, identifier == segment_k ? "segment" : "header");
        if (identifier == segment_k) return uform_success_k;
        offset += size_t(size);
    }
    return refuse(fault, uform_malformed_k, "truncated: no segment follows its header");
}

uform_status_t check_wav(file_t file, fault_t &fault) noexcept {
    // A program that writes to a pipe leaves the size at one of its largest values.
    constexpr uint64_t unknown_k = 0x7fff0000;
    for (size_t offset = 12; file.length - offset >= 8;) {
        uint64_t const size = little_endian(file.data + offset + 4, 4);
        bool const sound = starts(file, offset, "data");
        offset += 8;
        if (sound && size >= unknown_k) return uform_success_k;
        if (size > file.length - offset) return truncated(fault, sound ? "sound" : "last chunk");
        if (sound) return uform_success_k;
        offset = std::min(file.length, offset + size_t(size) + (size & 1));
    }
    return refuse(fault, uform_malformed_k, "truncated: no sound follows its header");
}

/** MPEG-1 or 2, layer III, of known rates. */
bool starts_mp3_frame(file_t file, size_t offset) noexcept {
    if (offset > file.length || file.length - offset < 4) return false;
    uint8_t const *const header = file.data + offset;
    return header[0] == 0xff && (header[1] & 0xe6) == 0xe2 && (header[1] & 0x18) != 0x08 && header[2] >> 4 != 15 &&
           header[2] >> 4 != 0 && (header[2] & 0x0c) != 0x0c;
}

/** The encoder's note in the first frame ("Xing" or "Info") tells how long all frames are. */
uform_status_t check_mp3(file_t file, size_t offset, fault_t &fault) noexcept {
    bool const version_1 = (file.data[offset + 1] & 0x08) != 0, mono = file.data[offset + 3] >> 6 == 3;
    size_t note = offset + 4 + (version_1 ? (mono ? 17 : 32) : (mono ? 9 : 17));
    if (!starts(file, note, "Xing") && !starts(file, note, "Info")) return uform_success_k;
    note += 4;
    if (file.length - note < 12) return truncated(fault, "first frame");
    uint64_t const flags = big_endian(file.data + note, 4);
    note += flags & 1 ? 8 : 4;
    if ((flags & 2) && big_endian(file.data + note, 4) > file.length - offset) return truncated(fault, "sound");
    return uform_success_k;
}

/** RFC 3533. Pages have checksums; a demuxer would skip what fails them. */
uform_status_t check_ogg(file_t file, fault_t &fault) noexcept {
    static std::array<uint32_t, 256> const remainders = [] {
        std::array<uint32_t, 256> made;
        for (uint32_t byte = 0; byte != 256; ++byte) {
            uint32_t remainder = byte << 24;
            for (int bit = 0; bit != 8; ++bit) remainder = remainder << 1 ^ (remainder >> 31 ? 0x04c11db7 : 0);
            made[byte] = remainder;
        }
        return made;
    }();
    for (size_t offset = 0; offset != file.length;) {
        size_t const left = file.length - offset;
        uint8_t const *const page = file.data + offset;
        if (!starts(file, offset, "OggS") || left < 27) return refuse(fault, uform_malformed_k, "a page is broken");
        size_t length = 27 + page[26];
        if (length > left) return truncated(fault, "last page");
        for (size_t segment = 0; segment != page[26]; ++segment) length += page[27 + segment];
        if (length > left) return truncated(fault, "last page");
        uint32_t sum = 0;
        for (size_t index = 0; index != length; ++index) {
            uint8_t const byte = index - 22 < 4 ? 0 : page[index]; // The sum counts as zeros itself.
            sum = sum << 8 ^ remainders[sum >> 24 ^ byte];
        }
        if (sum != little_endian(page + 22, 4)) return refuse(fault, uform_malformed_k, "a page fails its checksum");
        offset += length;
    }
    return uform_success_k;
}

} // namespace

uform_status_t tell_container(file_t file, container_t &container, fault_t &fault) noexcept {
    // Pictures in the same boxes, by their brand.
    for (char const *picture : {"ftypheic", "ftypheix", "ftypmif1", "ftypavif"})
        if (starts(file, 4, picture)) return refuse(fault, uform_unsupported_layout_k, "a picture, not a clip");
    if (starts(file, 4, "ftyp") || starts(file, 4, "moov") || starts(file, 4, "mdat")) {
        container = container_t::mov_k;
        uint64_t samples_left = file.length;
        return check_boxes(file, 0, samples_left, fault);
    }
    if (starts(file, 0, "\x1a\x45\xdf\xa3")) return container = container_t::matroska_k, check_matroska(file, fault);
    if ((starts(file, 0, "RIFF") || starts(file, 0, "RF64")) && starts(file, 8, "WAVE"))
        return container = container_t::wav_k, check_wav(file, fault);
    if (starts(file, 0, "OggS")) return container = container_t::ogg_k, check_ogg(file, fault);
    size_t offset = 0;
    while (starts(file, offset, "ID3") && file.length - offset >= 10) {
        size_t size = 10;
        for (size_t index = 6; index != 10; ++index)
            size += size_t(file.data[offset + index] & 0x7f) << 7 * (9 - index);
        if (size > file.length - offset) return truncated(fault, "tag");
        offset += size;
    }
    if (starts(file, offset, "fLaC")) return container = container_t::flac_k, uform_success_k;
    if (starts_mp3_frame(file, offset)) return container = container_t::mp3_k, check_mp3(file, offset, fault);
    if (!file.length) return refuse(fault, uform_malformed_k, "the file is empty");
    return refuse(fault, uform_unsupported_layout_k, "neither MP4, WebM, WAV, FLAC, MP3 nor Opus");
}

} // namespace uform
