/** Pictures from files, or from pixels in memory. */
#pragma once
#include "media_source.h"

namespace uform {

/** What both have in common: a picture is resized to a grid of patches. */
class image_source_t : public media_source_t {
  public:
    explicit image_source_t(image_config_t const &config) noexcept : config_(config) {}

    size_t scratch_bytes(segment_t const &segment) const noexcept override;
    void patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                 size_t stride) const noexcept override;

  protected:
    ~image_source_t() = default;

    void place(picture_t picture, segment_t &segment) const noexcept;
    /** The size that a segment's picture is resized to. */
    picture_t size_of(segment_t const &segment) const noexcept;

    image_config_t const &config_;
};

class image_files_t final : public image_source_t {
  public:
    image_files_t(image_config_t const &config, uform_tape_t const &files, limits_t const &limits,
                  images_codecs_t const &codecs) noexcept
        : image_source_t(config), files_(files), limits_(limits), codecs_(codecs) {}

    uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept override;
    uint64_t bytes(size_t item) const noexcept override { return file_of(files_, item).length; }
    uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept override;

  private:
    uform_tape_t const &files_;
    limits_t const &limits_;
    images_codecs_t const &codecs_;
};

class image_pixels_t final : public image_source_t {
  public:
    image_pixels_t(image_config_t const &config, uform_pixels_t const *pixels) noexcept
        : image_source_t(config), pixels_(pixels) {}

    uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept override;
    uint64_t bytes(size_t item) const noexcept override { return 3 * pixels_[item].height * pixels_[item].width; }
    uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept override;

  private:
    uform_pixels_t const *pixels_;
};

} // namespace uform
