/** Recordings from files, or from samples in memory. */
#pragma once
#include "media_source.h"

namespace uform {

/** What both have in common: samples at the model's rate become frames of the log-mel scale, and some of them a token.
 */
class audio_source_t : public media_source_t {
  public:
    explicit audio_source_t(config_t const &config) noexcept : config_(config) {}

    size_t scratch_bytes(segment_t const &segment) const noexcept override;
    void patches(segment_t const &segment, std::byte const *scratch, size_t first, size_t count, float *out,
                 size_t stride) const noexcept override;

  protected:
    ~audio_source_t() = default;

    /** Samples that fill the context. */
    size_t most_samples() const noexcept;
    /** Samples that a segment has room for. */
    size_t room(segment_t const &segment) const noexcept;
    /** Tokens of so many samples. */
    size_t tokens_of(size_t samples) const noexcept;
    /** Where a segment's samples may be decoded to. */
    float *samples_in(segment_t const &segment, std::byte *scratch) const noexcept;
    /** Frames of samples, which may be those of `samples_in`. MALFORMED where one is no number, or far too loud. */
    uform_status_t finish(segment_t const &segment, std::byte *scratch, float const *samples, size_t count,
                          size_t &times) const noexcept;

    config_t const &config_;
};

class audio_files_t final : public audio_source_t {
  public:
    audio_files_t(config_t const &config, uform_tape_t const &files, limits_t const &limits,
                  clips_codecs_t const &codecs) noexcept
        : audio_source_t(config), files_(files), limits_(limits), codecs_(codecs) {}

    uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept override;
    uint64_t bytes(size_t item) const noexcept override { return file_of(files_, item).length; }
    uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept override;

  private:
    uform_tape_t const &files_;
    limits_t const &limits_;
    clips_codecs_t const &codecs_;
};

class audio_samples_t final : public audio_source_t {
  public:
    /** `codecs` resample; nullptr: `rate` is the model's own. */
    audio_samples_t(config_t const &config, uform_samples_t const *samples, uint32_t rate,
                    clips_codecs_t const *codecs) noexcept
        : audio_source_t(config), samples_(samples), rate_(rate), codecs_(codecs) {}

    uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept override;
    uint64_t bytes(size_t item) const noexcept override { return samples_[item].count * sizeof(float); }
    uform_status_t decode(segment_t const &segment, std::byte *scratch, size_t &times) const noexcept override;

  private:
    uform_samples_t const *samples_;
    uint32_t rate_;
    clips_codecs_t const *codecs_;
};

} // namespace uform
