/** Items of media on their way from files, pixels or samples to patches. */
#pragma once
#include <cstddef>
#include <cstdint>

#include "uform/encode.h"

#include "../core/failure.h"
#include "../media/codecs.h"
#include "../model/forward.h"

namespace uform {

/** What is found out about an item on the way. */
struct item_notes_t {
    uint64_t extent = 0; /**< Frames, or samples at the model's rate, that were decoded. */
    bool truncated = false;
};

/** Where the items of a call come from. */
class media_source_t : public patches_source_t {
  public:
    /**
     *  Finds out from an item's headers what grid of tokens it becomes: `times`, `rows` and `columns` of its segment; a
     *  `times` of 0 where it has no token. A failure is in the fault. Called on many threads, for different items.
     */
    virtual uform_status_t probe(size_t item, segment_t &segment, fault_t &fault) const noexcept = 0;
    /** Bytes of an item's file, pixels or samples. */
    virtual uint64_t bytes(size_t item) const noexcept = 0;

    /** Notes that an item cannot be decoded: SUCCESS where it is skipped, otherwise a failure that is noted. */
    uform_status_t refuse_item(size_t item, fault_t const &fault) const noexcept;

    char const *name = nullptr;           /**< Of the argument. */
    uform_item_fault_t *faults = nullptr; /**< [count], or nullptr: nothing is skipped. */
    item_notes_t *notes = nullptr;        /**< [count] */

  protected:
    ~media_source_t() = default;
};

/** Files of a tape. */
inline file_t file_of(uform_tape_t const &files, size_t item) noexcept {
    size_t const begin = files.offsets[item], length = files.offsets[item + 1] - begin;
    return {length ? static_cast<uint8_t const *>(files.data) + begin : nullptr, length};
}

/**
 *  Patches of pictures that stand one after another in memory, [frame, height, width, 3], from [0, 255] to [-1, 1].
 *  A patch is [frame, row, column, channel] of `frames` pictures; past the last one, that one stands in.
 */
struct patch_cutter_t {
    uint8_t const *rgb = nullptr;
    size_t pictures = 1;
    size_t rows = 1, columns = 1; /**< Patches of a picture. */
    size_t side = 0;
    size_t frames = 1;

    /** Patches `first` up to `first + count`, row by row, to rows of `stride` numbers. */
    void cut(size_t first, size_t count, float *out, size_t stride) const noexcept;
};

} // namespace uform
