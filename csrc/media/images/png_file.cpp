#include "media/images/png_file.h"

#include <cstring>

#include <libdeflate.h>

#include "media/images/bounds.h"
#include "media/images/exif.h"

namespace uform {
namespace {

constexpr size_t signature_bytes_k = 8;

constexpr uint32_t u32(uint8_t const *data) noexcept {
    return uint32_t(data[0]) << 24 | uint32_t(data[1]) << 16 | uint32_t(data[2]) << 8 | data[3];
}

constexpr uint32_t type_of(char const (&name)[5]) noexcept {
    return uint32_t(name[0]) << 24 | uint32_t(name[1]) << 16 | uint32_t(name[2]) << 8 | uint32_t(name[3]);
}

constexpr uint32_t header_k = type_of("IHDR"), palette_k = type_of("PLTE"), transparency_k = type_of("tRNS"),
                   data_k = type_of("IDAT"), end_k = type_of("IEND"), exif_k = type_of("eXIf"),
                   animation_k = type_of("acTL"), frame_k = type_of("fcTL"), frame_data_k = type_of("fdAT");

/** Four bytes come before the compressed data in a chunk of an animation's frame: its place in the sequence. */
constexpr size_t prefix_bytes(uint32_t type) noexcept { return type == frame_data_k ? 4 : 0; }

struct chunk_t {
    uint32_t type = 0;
    uint8_t const *data = nullptr;
    size_t length = 0;

    static constexpr size_t before_k = 8; /**< Bytes of length and type. */
    static constexpr size_t after_k = 4;  /**< Bytes of the check. */

    /** At a place where there is one: see `walker_t::next`. */
    explicit chunk_t(uint8_t const *place) noexcept
        : type(u32(place + 4)), data(place + before_k), length(u32(place)) {}

    uint8_t const *place() const noexcept { return data - before_k; }
    char const *name() const noexcept { return reinterpret_cast<char const *>(data - 4); }
    uint8_t const *end() const noexcept { return data + length + after_k; }
    bool is_data() const noexcept { return type == data_k || type == frame_data_k; }
    bool is_ancillary() const noexcept { return type >> 29 & 1; }

    uform_status_t check(fault_t &fault) const noexcept {
        if (libdeflate_crc32(0, data - 4, length + 4) == u32(data + length)) return uform_success_k;
        return refuse(fault, uform_malformed_k, "a PNG file with a chunk of type %.4s that is damaged", name());
    }
};

/** Goes from chunk to chunk. */
class walker_t {
  public:
    walker_t(file_t file, limits_t const &limits, png_file_t &png, fault_t &fault) noexcept
        : file_(file), limits_(limits), png_(png), fault_(fault) {}

    uform_status_t walk() noexcept {
        uint8_t const *place = file_.data + signature_bytes_k;
        for (bool ended = false; !ended;) {
            if (uform_status_t const status = check_place(place)) return status;
            chunk_t const chunk(place);
            if (!chunk.is_data())
                if (uform_status_t const status = chunk.check(fault_)) return status;
            if (uform_status_t const status = take(chunk)) return status;
            ended = chunk.type == end_k;
            place = chunk.end();
        }
        if (!png_.pieces) return refuse(fault_, uform_malformed_k, "a PNG file without a picture");
        if (png_.samples.colour == png_colour_t::palette_k && !png_.palette.length)
            return refuse(fault_, uform_malformed_k, "a PNG file without its palette");
        return uform_success_k;
    }

  private:
    /** MALFORMED unless there is a whole chunk. */
    uform_status_t check_place(uint8_t const *place) noexcept {
        size_t const rest = size_t(file_.data + file_.length - place), around = chunk_t::before_k + chunk_t::after_k;
        if (rest < around || rest - around < u32(place))
            return refuse(fault_, uform_malformed_k, "a PNG file that is cut off");
        for (size_t index = 4; index != 8; ++index) {
            uint8_t const letter = place[index] | 0x20;
            if (letter < 'a' || letter > 'z')
                return refuse(fault_, uform_malformed_k, "a PNG file with a chunk of no valid type");
        }
        bool const is_first = place == file_.data + signature_bytes_k;
        if (is_first != (u32(place + 4) == header_k))
            return refuse(fault_, uform_malformed_k, "a PNG file whose header is not its first chunk, or not its only");
        return uform_success_k;
    }

    uform_status_t take(chunk_t const &chunk) noexcept {
        switch (chunk.type) {
        case header_k: return take_header(chunk);
        case palette_k: return take_palette(chunk);
        case transparency_k: png_.transparency = {chunk.data, chunk.length}; return uform_success_k;
        case exif_k: png_.orientation = exif_orientation(chunk.data, chunk.length); return uform_success_k;
        case animation_k: animated_ = animated_ || !png_.pieces; return uform_success_k;
        case frame_k: return animated_ ? take_frame(chunk) : uform_success_k;
        case data_k: return shown_ == data_k ? take_data(chunk) : uform_success_k;
        case frame_data_k: return shown_ == frame_data_k && frames_ == 1 ? take_data(chunk) : uform_success_k;
        case end_k: return uform_success_k;
        }
        if (chunk.is_ancillary()) return uform_success_k;
        return refuse(fault_, uform_unsupported_layout_k, "a PNG file with chunks of type %.4s", chunk.name());
    }

    uform_status_t take_header(chunk_t const &chunk) noexcept {
        if (chunk.length != 13) return refuse(fault_, uform_malformed_k, "the header of a PNG file has a wrong length");
        uint8_t const *const data = chunk.data;
        png_.canvas = {u32(data), u32(data + 4)};
        if (uform_status_t const status = check_pixels(png_.canvas.width, png_.canvas.height, limits_, fault_))
            return status;
        png_.frame = {0, 0, png_.canvas.width, png_.canvas.height};
        unsigned const depth = data[8], colour = data[9], compression = data[10], filter = data[11], order = data[12];
        // Bit `d` is set where samples may have `d` bits.
        constexpr uint32_t deep = 1u << 8 | 1u << 16, shallow = 1u << 1 | 1u << 2 | 1u << 4;
        constexpr uint32_t depths[7] = {shallow | deep, 0, deep, shallow | 1u << 8, deep, 0, deep};
        if (colour >= 7 || depth > 16 || !(depths[colour] >> depth & 1))
            return refuse(fault_, uform_malformed_k, "a PNG file of colour type %u with %u bits", colour, depth);
        if (compression || filter || order > 1)
            return refuse(fault_, uform_malformed_k, "a PNG file of an unknown compression, filter or order");
        png_.samples = {png_colour_t(colour), depth};
        png_.interlaced = order == 1;
        return uform_success_k;
    }

    uform_status_t take_palette(chunk_t const &chunk) noexcept {
        if (chunk.length % 3 || chunk.length > 256 * 3)
            return refuse(fault_, uform_malformed_k, "the palette of a PNG file has a wrong length");
        png_.palette = {chunk.data, chunk.length};
        return uform_success_k;
    }

    /** What an animation draws next. Its first frame takes the place of a still picture that came before. */
    uform_status_t take_frame(chunk_t const &chunk) noexcept {
        if (++frames_ != 1) return uform_success_k;
        if (chunk.length != 26)
            return refuse(fault_, uform_malformed_k, "a frame of a PNG file has a header of a wrong length");
        png_frame_t const frame = {u32(chunk.data + 12), u32(chunk.data + 16), u32(chunk.data + 4),
                                   u32(chunk.data + 8)};
        picture_t const &canvas = png_.canvas;
        bool const fits = frame.width && frame.height && frame.width <= canvas.width && frame.height <= canvas.height &&
                          frame.left <= canvas.width - frame.width && frame.top <= canvas.height - frame.height;
        bool const covers = frame.width == canvas.width && frame.height == canvas.height;
        if (!fits || (!png_.pieces && !covers))
            return refuse(fault_, uform_malformed_k, "a frame of a PNG file does not fit its canvas");
        png_.frame = frame;
        if (png_.pieces) shown_ = frame_data_k, png_.chunks = {}, png_.pieces = 0, png_.compressed_bytes = 0;
        return uform_success_k;
    }

    uform_status_t take_data(chunk_t const &chunk) noexcept {
        if (chunk.length < prefix_bytes(chunk.type))
            return refuse(fault_, uform_malformed_k, "a frame of a PNG file has a chunk that is too short");
        if (!png_.pieces) png_.chunks.data = chunk.place();
        else if (chunk.type == data_k && chunk.place() != png_.chunks.data + png_.chunks.length)
            return refuse(fault_, uform_malformed_k, "a PNG file whose picture is in several places");
        png_.chunks.length = size_t(chunk.end() - png_.chunks.data);
        png_.compressed_bytes += chunk.length - prefix_bytes(chunk.type);
        ++png_.pieces;
        return uform_success_k;
    }

    file_t const file_;
    limits_t const &limits_;
    png_file_t &png_;
    fault_t &fault_;
    bool animated_ = false;
    size_t frames_ = 0;       /**< Headers of frames so far. */
    uint32_t shown_ = data_k; /**< Chunks that hold what is shown. */
};

} // namespace

uform_status_t read_png(file_t file, limits_t const &limits, png_file_t &png, fault_t &fault) noexcept {
    return walker_t(file, limits, png, fault).walk();
}

uform_status_t join_png_data(png_file_t const &png, uint8_t *room, png_bytes_t &compressed, fault_t &fault) noexcept {
    compressed = {room, 0};
    uint8_t const *const end = png.chunks.data + png.chunks.length;
    uint32_t const type = chunk_t(png.chunks.data).type;
    for (uint8_t const *place = png.chunks.data; place != end;) {
        chunk_t const chunk(place);
        place = chunk.end();
        if (chunk.type != type) continue;
        if (uform_status_t const status = chunk.check(fault)) return status;
        size_t const prefix = prefix_bytes(type), length = chunk.length - prefix;
        if (png.pieces == 1) {
            compressed = {chunk.data + prefix, length};
            break;
        }
        std::memcpy(room + compressed.length, chunk.data + prefix, length);
        compressed.length += length;
    }
    return uform_success_k;
}

} // namespace uform
