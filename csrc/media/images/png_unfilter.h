/** Rows of PNG as they were before they were filtered for compression. */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** Bytes after the end of rows that `unfilter_png` may read. */
constexpr size_t png_padding_k = 8;

/**
 *  Undoes a row's filter, in place. False for a filter that does not exist.
 *  @param[in] filter As the row's first byte numbers it: none, sub, up, average, Paeth.
 *  @param[in,out] row [count]
 *  @param[in] above [count] the row before, unfiltered; zeros for the first one.
 *  @param[in] count A multiple of `pixel_bytes`.
 *  @param[in] pixel_bytes 1, 2, 3, 4, 6 or 8: bytes of a pixel, 1 where several are in a byte.
 */
bool unfilter_png(uint8_t filter, uint8_t *row, uint8_t const *above, size_t count, size_t pixel_bytes) noexcept;

} // namespace uform
