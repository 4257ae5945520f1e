#include "image_source.h"

#include "../media/fault.h"
#include "../media/grid.h"
#include "../media/resize.h"

namespace uform {

void image_source_t::place(picture_t picture, segment_t &segment) const noexcept {
    auto const side = static_cast<uint32_t>(config_.patch_side), most = static_cast<uint32_t>(config_.max_patches);
    grid_t const grid = grid_of(picture, side, most);
    segment.times = 1;
    segment.rows = grid.rows;
    segment.columns = grid.columns;
}

picture_t image_source_t::size_of(segment_t const &segment) const noexcept {
    return {static_cast<uint32_t>(segment.columns * config_.patch_side),
            static_cast<uint32_t>(segment.rows * config_.patch_side)};
}

size_t image_source_t::scratch_bytes(segment_t const &segment) const noexcept {
    return segment.tokens() * config_.patch_width();
}

void image_source_t::patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                             size_t stride) const noexcept {
    patch_cutter_t cutter;
    cutter.rgb = reinterpret_cast<uint8_t const *>(scratch);
    cutter.rows = segment.rows;
    cutter.columns = segment.columns;
    cutter.side = config_.patch_side;
    cutter.cut(first, count, out, stride);
}

uform_status_t image_files_t::probe(size_t item, segment_t &segment, fault_t &fault) const noexcept {
    picture_t picture;
    if (uform_status_t const status = codecs_.probe(file_of(files_, item), limits_, picture, fault)) return status;
    place(picture, segment);
    return uform_success_k;
}

uform_status_t image_files_t::decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept {
    fault_t fault;
    times = 1;
    file_t const file = file_of(files_, segment.item);
    if (codecs_.decode(file, limits_, size_of(segment), reinterpret_cast<uint8_t *>(scratch), fault)) {
        times = 0;
        return refuse_item(segment.item, fault);
    }
    return uform_success_k;
}

uform_status_t image_pixels_t::probe(size_t item, segment_t &segment, fault_t &fault) const noexcept {
    constexpr size_t longest_k = size_t(1) << 30;
    uform_pixels_t const &pixels = pixels_[item];
    if (!pixels.height || !pixels.width || pixels.height > longest_k || pixels.width > longest_k)
        return refuse(fault, uform_shape_mismatch_k, "a picture of %zu x %zu pixels, and its sides must be 1 to %zu",
                      pixels.width, pixels.height, longest_k);
    if (!pixels.data) return refuse(fault, uform_invalid_argument_k, "its data must not be NULL");
    place({static_cast<uint32_t>(pixels.width), static_cast<uint32_t>(pixels.height)}, segment);
    return uform_success_k;
}

uform_status_t image_pixels_t::decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept {
    uform_pixels_t const &pixels = pixels_[segment.item];
    picture_t const source = {static_cast<uint32_t>(pixels.width), static_cast<uint32_t>(pixels.height)};
    resizer_t resizer;
    times = 1;
    if (!resizer.open(source, size_of(segment), orientation_t::upright_k, reinterpret_cast<uint8_t *>(scratch)))
        return fail(uform_out_of_memory_k, segment.item, "%s: item %zu: no memory to resize it", name, segment.item);
    for (size_t row = 0; row != pixels.height; ++row) resizer.take(pixels.data + row * 3 * pixels.width);
    return uform_success_k;
}

} // namespace uform
