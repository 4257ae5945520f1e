#include "media/images/exif.h"

#include <cstring>

namespace uform {
namespace {

/** Numbers of a TIFF structure. Those beyond its end are zero. */
class tiff_t {
  public:
    tiff_t(uint8_t const *data, size_t length) noexcept
        : data_(data), length_(length), big_(length && data[0] == 'M') {}

    uint32_t u16(size_t offset) const noexcept {
        return big_ ? byte(offset) << 8 | byte(offset + 1) : byte(offset + 1) << 8 | byte(offset);
    }
    uint32_t u32(size_t offset) const noexcept {
        return big_ ? u16(offset) << 16 | u16(offset + 2) : u16(offset + 2) << 16 | u16(offset);
    }
    bool valid() const noexcept {
        return length_ >= 8 && (data_[0] == 'I' || big_) && data_[1] == data_[0] && u16(2) == 42;
    }

  private:
    uint32_t byte(size_t offset) const noexcept { return offset < length_ ? data_[offset] : 0; }

    uint8_t const *data_;
    size_t length_;
    bool big_;
};

} // namespace

orientation_t exif_orientation(uint8_t const *data, size_t length) noexcept {
    constexpr size_t prefix_length_k = 6, entry_length_k = 12;
    if (length >= prefix_length_k && !std::memcmp(data, "Exif\0\0", prefix_length_k))
        data += prefix_length_k, length -= prefix_length_k;
    tiff_t const tiff(data, length);
    if (!tiff.valid()) return orientation_t::upright_k;

    constexpr uint32_t orientation_tag_k = 0x0112, short_type_k = 3;
    size_t const directory = tiff.u32(4);
    size_t const entries = tiff.u16(directory);
    for (size_t index = 0; index != entries; ++index) {
        size_t const entry = directory + 2 + index * entry_length_k;
        if (tiff.u16(entry) != orientation_tag_k) continue;
        uint32_t const value = tiff.u16(entry + 8);
        bool const known = tiff.u16(entry + 2) == short_type_k && tiff.u32(entry + 4) == 1 && value >= 1 && value <= 8;
        return known ? orientation_t(value) : orientation_t::upright_k;
    }
    return orientation_t::upright_k;
}

} // namespace uform
