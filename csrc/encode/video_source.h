/** Videos from files. */
#pragma once
#include "media_source.h"

namespace uform {

class video_files_t final : public media_source_t {
  public:
    video_files_t(config_t const &config, uform_tape_t const &files, limits_t const &limits,
                  clips_codecs_t const &codecs) noexcept
        : config_(config), files_(files), limits_(limits), codecs_(codecs) {}

    uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept override;
    uint64_t bytes(size_t item) const noexcept override { return file_of(files_, item).length; }
    size_t scratch_bytes(segment_t const &segment) const noexcept override;
    uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept override;
    void patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                 size_t stride) const noexcept override;

  private:
    config_t const &config_;
    uform_tape_t const &files_;
    limits_t const &limits_;
    clips_codecs_t const &codecs_;
};

} // namespace uform
