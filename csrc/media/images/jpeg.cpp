#include "media/images/jpeg.h"

#include <algorithm>
#include <csetjmp>
#include <cstdio>
#include <cstring>

// Before its list of errors, which needs it.
#include <jpeglib.h>

#include <jerror.h>

#include "media/images/bounds.h"
#include "media/images/exif.h"
#include "media/resize.h"

namespace uform {
namespace {

constexpr int exif_marker_k = JPEG_APP0 + 1;
constexpr int most_scans_k = 500; /**< More than refining every bit of every coefficient apart would take. */
constexpr JDIMENSION rows_at_once_k = 4;
/** The mean of each block takes a bit, and planes of 8 x 8 pixels a block are half as large as the picture together. */
constexpr uint64_t most_pixels_a_byte_k = 8 * 2 * 64;

/**
 *  libjpeg's decompressor. Its errors jump back into the member function that called it: whatever has a destructor is
 *  left to the callers of `open`, `start` and `read`.
 */
class jpeg_t {
  public:
    jpeg_t(limits_t const &limits, fault_t &fault) noexcept : limits_(limits), fault_(fault) {}
    jpeg_t(jpeg_t const &) = delete;
    jpeg_t &operator=(jpeg_t const &) = delete;
    ~jpeg_t() noexcept { jpeg_destroy_decompress(&info_); }

    /** Reads the headers, up to the first scan, and checks what they say. */
    uform_status_t open(file_t file) noexcept {
        if (setjmp(escape_)) return fault_.status;
        info_.err = jpeg_std_error(&errors_);
        info_.client_data = this;
        errors_.error_exit = on_error;
        errors_.emit_message = on_message;
        progress_.progress_monitor = on_progress;
        jpeg_create_decompress(&info_);
        info_.progress = &progress_;
        jpeg_save_markers(&info_, exif_marker_k, 0xFFFF);
        file_ = file;
        jpeg_mem_src(&info_, file.data, static_cast<unsigned long>(file.length));
        jpeg_read_header(&info_, TRUE);
        return check();
    }

    picture_t stored() const noexcept { return {info_.image_width, info_.image_height}; }

    orientation_t orientation() const noexcept {
        for (jpeg_saved_marker_ptr marker = info_.marker_list; marker; marker = marker->next)
            if (marker->marker == exif_marker_k && marker->data_length > 6 && !std::memcmp(marker->data, "Exif\0\0", 6))
                return exif_orientation(marker->data, marker->data_length);
        return orientation_t::upright_k;
    }

    /** Decodes to `size` as viewed. */
    uform_status_t decode(picture_t size, uint8_t *rgb) noexcept {
        picture_t const target = turned(size, orientation());
        info_.scale_denom = 8;
        for (info_.scale_num = 1; info_.scale_num != 8 && !covers(target);) info_.scale_num *= 2;
        picture_t const scaled = {scaled_side(info_.image_width), scaled_side(info_.image_height)};
        double const scale = info_.scale_num / 8.0;

        uint64_t const memory = coefficient_bytes() + resizer_t::bytes(scaled, size, orientation());
        if (uform_status_t const status = check_bytes(memory, limits_, fault_)) return status;
        resizer_t resizer;
        if (!resizer.open(scaled, info_.image_width * scale, info_.image_height * scale, size, orientation(), rgb))
            return refuse(fault_, uform_out_of_memory_k, "no memory to resize a picture");
        return read(resizer);
    }

  private:
    static jpeg_t &self(j_common_ptr info) noexcept { return *static_cast<jpeg_t *>(info->client_data); }

    [[noreturn]] void escape() noexcept { std::longjmp(escape_, 1); }

    static void on_error(j_common_ptr info) noexcept {
        int const code = info->err->msg_code;
        bool const unsupported = code == JERR_SOF_UNSUPPORTED || code == JERR_BAD_PRECISION;
        uform_status_t const status = unsupported                  ? uform_unsupported_layout_k
                                      : code == JERR_OUT_OF_MEMORY ? uform_out_of_memory_k
                                                                   : uform_malformed_k;
        char message[JMSG_LENGTH_MAX];
        info->err->format_message(info, message);
        refuse(self(info).fault_, status, "%s", message);
        self(info).escape();
    }

    /** Negative levels are warnings: of data that is damaged, but for a few. */
    static void on_message(j_common_ptr info, int level) noexcept {
        int const code = info->err->msg_code;
        if (level >= 0 || code == JWRN_JFIF_MAJOR || code == JWRN_ADOBE_XFORM) return;
        if (code == JWRN_EXTRANEOUS_DATA && self(info).is_padding(info->err->msg_parm.i[0])) return;
        on_error(info);
    }

    /** Called now and then while all scans of a picture are read, before its first row is. */
    static void on_progress(j_common_ptr info) noexcept { self(info).count_scans(); }

    /** Some cameras put zeros between the last block and the marker after it. */
    bool is_padding(int count) const noexcept {
        uint8_t const *const end = info_.src->next_input_byte;
        if (count < 0 || end - file_.data < count) return false;
        return std::all_of(end - count, end, [](uint8_t byte) { return byte == 0; });
    }

    /** A scan of a few bytes may touch every block: the time that all take together is bounded, whatever the bytes. */
    void count_scans() noexcept {
        if (scans_ == info_.input_scan_number) return;
        scans_ = info_.input_scan_number;
        blocks_ += uint64_t(info_.MCUs_per_row) * info_.MCU_rows_in_scan * uint64_t(info_.blocks_in_MCU);
        if (scans_ <= most_scans_k && blocks_ <= limits_.pixels) return;
        refuse(fault_, uform_malformed_k, "a picture of too many scans");
        escape();
    }

    uform_status_t check() noexcept {
        if (uform_status_t const status = check_pixels(info_.image_width, info_.image_height, limits_, fault_))
            return status;
        if (uint64_t(info_.image_width) * info_.image_height > most_pixels_a_byte_k * file_.length)
            return refuse(fault_, uform_malformed_k, "a JPEG file with less data than its picture takes");
        if (info_.arith_code) return refuse(fault_, uform_unsupported_layout_k, "a JPEG file with arithmetic coding");
        if (info_.data_precision != 8)
            return refuse(fault_, uform_unsupported_layout_k, "a JPEG file of %d bits", info_.data_precision);
        switch (info_.jpeg_color_space) {
        case JCS_GRAYSCALE:
        case JCS_RGB:
        case JCS_YCbCr: info_.out_color_space = JCS_RGB; return uform_success_k;
        case JCS_CMYK:
        case JCS_YCCK: info_.out_color_space = JCS_CMYK; return uform_success_k;
        default: return refuse(fault_, uform_unsupported_layout_k, "a JPEG file of %d colours", info_.num_components);
        }
    }

    JDIMENSION scaled_side(JDIMENSION side) const noexcept { return (side * info_.scale_num + 7) / 8; }

    /** A last pixel that is not whole counts, unless it is more than a hundredth: 1023 pixels are decoded for 256. */
    bool covers(picture_t target) const noexcept {
        auto const suffices = [this](JDIMENSION side, uint32_t wanted) {
            bool const nearly = uint64_t(side) * info_.scale_num * 100 >= uint64_t(wanted) * info_.scale_denom * 99;
            return nearly && scaled_side(side) >= wanted;
        };
        return suffices(info_.image_width, target.width) && suffices(info_.image_height, target.height);
    }

    /** Of what stays in memory until the last scan was read. */
    uint64_t coefficient_bytes() noexcept {
        uint64_t blocks = 0;
        if (jpeg_has_multiple_scans(&info_))
            for (int component = 0; component != info_.num_components; ++component) {
                jpeg_component_info const &plane = info_.comp_info[component];
                blocks += uint64_t(plane.width_in_blocks) * plane.height_in_blocks;
            }
        return blocks * sizeof(JBLOCK);
    }

    uform_status_t read(resizer_t &resizer) noexcept {
        if (setjmp(escape_)) return fault_.status;
        jpeg_start_decompress(&info_);
        auto const columns = info_.output_width, samples = columns * JDIMENSION(info_.output_components);
        JSAMPARRAY const rows =
            info_.mem->alloc_sarray(reinterpret_cast<j_common_ptr>(&info_), JPOOL_IMAGE, samples + 1, rows_at_once_k);
        // Off alignment: libjpeg-turbo writes aligned rows past the caches, and they are read right after.
        for (JDIMENSION row = 0; row != rows_at_once_k; ++row) ++rows[row];
        while (info_.output_scanline != info_.output_height) {
            JDIMENSION const count = jpeg_read_scanlines(&info_, rows, rows_at_once_k);
            for (JDIMENSION row = 0; row != count; ++row) {
                if (info_.out_color_space == JCS_CMYK) mix(rows[row], columns);
                resizer.take(rows[row]);
            }
        }
        // On to the end of the picture, which has to be there.
        jpeg_finish_decompress(&info_);
        return uform_success_k;
    }

    /** Inverted CMYK to RGB, in place: what is left of white under an ink, and under black. */
    static void mix(uint8_t *row, size_t columns) noexcept {
        for (size_t column = 0; column != columns; ++column)
            for (size_t channel = 0; channel != 3; ++channel) {
                unsigned const product = row[4 * column + channel] * row[4 * column + 3] + 128u;
                row[3 * column + channel] = uint8_t((product + (product >> 8)) >> 8);
            }
    }

    limits_t const &limits_;
    fault_t &fault_;
    file_t file_;
    int scans_ = 0;
    uint64_t blocks_ = 0; /**< Of all scans. */
    jpeg_decompress_struct info_ = {};
    jpeg_error_mgr errors_ = {};
    jpeg_progress_mgr progress_ = {};
    std::jmp_buf escape_;
};

} // namespace

uform_status_t probe_jpeg(file_t file, limits_t const &limits, picture_t &picture, fault_t &fault) noexcept {
    jpeg_t jpeg(limits, fault);
    if (uform_status_t const status = jpeg.open(file)) return status;
    picture = turned(jpeg.stored(), jpeg.orientation());
    return uform_success_k;
}

uform_status_t decode_jpeg(file_t file, limits_t const &limits, picture_t size, uint8_t *rgb, fault_t &fault) noexcept {
    jpeg_t jpeg(limits, fault);
    if (uform_status_t const status = jpeg.open(file)) return status;
    return jpeg.decode(size, rgb);
}

} // namespace uform
