/** Pixels of PNG as RGB over white. */
#pragma once
#include "media/images/png_file.h"

namespace uform {

class png_colours_t {
  public:
    /** What of the file is read must outlive this. */
    explicit png_colours_t(png_file_t const &png) noexcept;

    /**
     *  A row's pixels. Samples of 16 bits are rounded; entries that a palette lacks are black.
     *  @param[in] row [png.samples.row_bytes(columns)] unfiltered.
     *  @param[out] rgb [columns, 3]
     */
    void convert(uint8_t const *row, size_t columns, uint8_t *rgb) const noexcept;

    /** Whether `convert` would only copy. */
    bool copies() const noexcept { return copies_; }

  private:
    void list_greys(png_bytes_t transparency) noexcept;
    void list_palette(png_bytes_t palette, png_bytes_t transparency) noexcept;

    png_samples_t const samples_;
    bool copies_ = false;
    bool listed_ = false; /**< Whether pixels are indices of `colours_`. */
    uint8_t colours_[256][3] = {};
    bool has_key_ = false; /**< Whether pixels of the colour `key_` are transparent. */
    uint8_t key_[6] = {};  /**< A pixel, as it is in a row. */
};

} // namespace uform
