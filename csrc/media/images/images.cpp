#include <algorithm>
#include <cstring>

#include "media/fault.h"
#include "media/images/jpeg.h"
#include "media/images/png.h"
#include "media/images/webp.h"

namespace uform {
namespace {

/** How files of a format start. */
struct signature_t {
    char const *format;
    size_t offset;
    size_t length;
    char const *bytes;

    /** Whether the file has these bytes, as far as it goes. */
    bool fits(file_t file) const noexcept {
        size_t const here = std::min(length, file.length - std::min(offset, file.length));
        return here && !std::memcmp(file.data + offset, bytes, here);
    }
    bool starts_in(file_t file) const noexcept { return file.length > offset; }
    bool ends_in(file_t file) const noexcept { return file.length >= offset + length; }
};

constexpr signature_t jpeg_k = {"JPEG", 0, 3, "\xFF\xD8\xFF"};
constexpr signature_t png_k = {"PNG", 0, 8, "\x89PNG\r\n\x1A\n"};
constexpr signature_t riff_k = {"WebP", 0, 4, "RIFF"};
constexpr signature_t webp_k = {"WebP", 8, 4, "WEBP"};

/** Formats that are told apart only to name them. */
constexpr signature_t others_k[] = {
    {"GIF", 0, 4, "GIF8"},       {"BMP", 0, 2, "BM"},         {"TIFF", 0, 4, "II*\0"},
    {"TIFF", 0, 4, "MM\0*"},     {"AVIF", 4, 8, "ftypavif"},  {"AVIF", 4, 8, "ftypavis"},
    {"HEIC", 4, 7, "ftyphei"},   {"HEIC", 4, 7, "ftyphev"},   {"HEIF", 4, 8, "ftypmif1"},
    {"HEIF", 4, 8, "ftypmsf1"},  {"MP4", 4, 4, "ftyp"},       {"JPEG XL", 0, 2, "\xFF\x0A"},
    {"JPEG XL", 4, 4, "JXL "},   {"JPEG 2000", 4, 4, "jP  "}, {"JPEG 2000", 0, 4, "\xFF\x4F\xFF\x51"},
    {"ICO", 0, 4, "\0\0\1\0"},   {"Photoshop", 0, 4, "8BPS"}, {"QOI", 0, 4, "qoif"},
    {"PDF", 0, 5, "%PDF-"},      {"SVG", 0, 4, "<svg"},       {"XML", 0, 5, "<?xml"},
    {"HTML", 0, 9, "<!DOCTYPE"}, {"HTML", 0, 5, "<html"},
};

struct decoder_t {
    decltype(images_codecs_t::probe) probe = nullptr;
    decltype(images_codecs_t::decode) decode = nullptr;
};

/** The format, told by the first bytes. */
uform_status_t choose(file_t file, decoder_t &decoder, fault_t &fault) noexcept {
    if (!file.length) return refuse(fault, uform_malformed_k, "an empty file");
    signature_t const *signature = nullptr;
    if (jpeg_k.fits(file)) signature = &jpeg_k, decoder = {probe_jpeg, decode_jpeg};
    else if (png_k.fits(file)) signature = &png_k, decoder = {probe_png, decode_png};
    else if (riff_k.fits(file) && (!webp_k.starts_in(file) || webp_k.fits(file)))
        signature = &webp_k, decoder = {probe_webp, decode_webp};
    if (signature && signature->ends_in(file)) return uform_success_k;
    if (signature) return refuse(fault, uform_malformed_k, "a %s file that is cut off", signature->format);

    for (signature_t const &other : others_k)
        if (other.ends_in(file) && other.fits(file))
            return refuse(fault, uform_unsupported_layout_k, "a file that seems to be %s, not JPEG, PNG or WebP",
                          other.format);
    return refuse(fault, uform_unsupported_layout_k, "a file that is neither JPEG, nor PNG, nor WebP");
}

uform_status_t probe(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept {
    decoder_t decoder;
    if (uform_status_t const status = choose(file, decoder, fault)) return status;
    return decoder.probe(file, limits, picture, fault);
}

uform_status_t decode(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept {
    decoder_t decoder;
    if (uform_status_t const status = choose(file, decoder, fault)) return status;
    return decoder.decode(file, limits, size, rgb, fault);
}

} // namespace
} // namespace uform

extern "C" uform::images_codecs_t const *uform_images_codecs(void) noexcept {
    static constexpr uform::images_codecs_t codecs = {uform::probe, uform::decode};
    return &codecs;
}
