/** Rows of PNG as they were before they were filtered for compression. */
#pragma once
#include <cstddef>
#include <cstdint>

namespace uform {

/** Bytes after the end of rows that may be read. */
constexpr size_t png_padding_k = 16;

/**
 *  Undoes a row's filter, in place. False for a filter that does not exist.
 *  @param[in] filter As the row's first byte numbers it: none, sub, up, average, Paeth.
 *  @param[in,out] row [count]
 *  @param[in] above [count] the row before, unfiltered; zeros for the first one.
 *  @param[in] count A multiple of `pixel_bytes`.
 *  @param[in] pixel_bytes 1, 2, 3, 4, 6 or 8: bytes of a pixel, 1 where several are in a byte.
 */
bool unfilter_png(uint8_t filter, uint8_t *row, uint8_t const *above, size_t count, size_t pixel_bytes) noexcept;

/** Rows that `unfilter_png_together` takes. */
constexpr size_t png_rows_together_k = 4;

/**
 *  Undoes the filters of as many rows at once where that is quicker, in place. False, with nothing done, elsewhere: on
 *  other machines, for other pixels, or if few of the filters are Paeth's, and for a filter that does not exist.
 *  @param[in,out] lines Rows, each after the byte with its filter's number, which is lost.
 *  @param[in] stride Bytes from a row to the next: those of a row, and one.
 *  @param[in] above The row before, unfiltered; zeros for the first one.
 */
bool unfilter_png_together(uint8_t *lines, size_t stride, uint8_t const *above, size_t pixel_bytes) noexcept;

#if defined(__x86_64__)
/** The same with AVX2, always. @param[in] columns At least `png_rows_together_k`. @param[in] pixel_bytes At most 4. */
void unfilter_png_haswell(uint8_t *lines, size_t stride, uint8_t const *above, size_t columns,
                          size_t pixel_bytes) noexcept;
#endif

} // namespace uform
