#include "media/images/png_unfilter.h"

#include <cstring>

namespace uform {
namespace {

/** The samples of a pixel, which do not depend on each other. */
using samples_t = int16_t __attribute__((vector_size(16)));

samples_t load(uint8_t const *pixel) noexcept {
    uint8_t __attribute__((vector_size(8))) bytes;
    static_assert(sizeof(bytes) <= png_padding_k);
    std::memcpy(&bytes, pixel, sizeof(bytes));
    return __builtin_convertvector(bytes, samples_t);
}

template <size_t pixel_bytes_> void store(samples_t samples, uint8_t *pixel) noexcept {
    auto const bytes = __builtin_convertvector(samples, uint8_t __attribute__((vector_size(8))));
    std::memcpy(pixel, &bytes, pixel_bytes_);
}

/** Sums modulo 256 of samples from 0 to 255. */
samples_t add(samples_t a, samples_t b) noexcept {
    using bytes_t = uint8_t __attribute__((vector_size(16)));
    return samples_t(bytes_t(a) + bytes_t(b));
}

samples_t least(samples_t a, samples_t b) noexcept { return a < b ? a : b; }

samples_t magnitude(samples_t a) noexcept { return a > -a ? a : -a; }

void undo_up(uint8_t *__restrict row, uint8_t const *above, size_t count) noexcept {
    for (size_t index = 0; index != count; ++index) row[index] += above[index];
}

template <size_t pixel_bytes_> void undo_sub(uint8_t *row, size_t count) noexcept {
    samples_t left = {};
    for (uint8_t *const end = row + count; row != end; row += pixel_bytes_) {
        left = add(left, load(row));
        store<pixel_bytes_>(left, row);
    }
}

template <size_t pixel_bytes_> void undo_average(uint8_t *row, uint8_t const *above, size_t count) noexcept {
    samples_t left = {};
    for (uint8_t *const end = row + count; row != end; row += pixel_bytes_, above += pixel_bytes_) {
        left = add((left + load(above)) >> 1, load(row));
        store<pixel_bytes_>(left, row);
    }
}

/** Predicts whichever of left, above and above left is nearest to left + above - above left, in this order. */
template <size_t pixel_bytes_> void undo_paeth(uint8_t *row, uint8_t const *above, size_t count) noexcept {
    samples_t left = {}, corner = {};
    for (uint8_t *const end = row + count; row != end; row += pixel_bytes_, above += pixel_bytes_) {
        // Little of this waits for the pixel on the left.
        samples_t const up = load(above), from_left = magnitude(up - corner);
        samples_t const from_up = magnitude(left - corner), from_corner = magnitude(left + (up - corner - corner));
        samples_t const nearer = from_up <= from_corner ? up : corner;
        left = add(from_left <= least(from_up, from_corner) ? left : nearer, load(row));
        corner = up;
        store<pixel_bytes_>(left, row);
    }
}

template <size_t pixel_bytes_> bool undo(uint8_t filter, uint8_t *row, uint8_t const *above, size_t count) noexcept {
    switch (filter) {
    case 0: return true;
    case 1: undo_sub<pixel_bytes_>(row, count); return true;
    case 2: undo_up(row, above, count); return true;
    case 3: undo_average<pixel_bytes_>(row, above, count); return true;
    case 4: undo_paeth<pixel_bytes_>(row, above, count); return true;
    default: return false;
    }
}

} // namespace

bool unfilter_png(uint8_t filter, uint8_t *row, uint8_t const *above, size_t count, size_t pixel_bytes) noexcept {
    switch (pixel_bytes) {
    case 1: return undo<1>(filter, row, above, count);
    case 2: return undo<2>(filter, row, above, count);
    case 3: return undo<3>(filter, row, above, count);
    case 4: return undo<4>(filter, row, above, count);
    case 6: return undo<6>(filter, row, above, count);
    default: return undo<8>(filter, row, above, count);
    }
}

#if defined(__x86_64__)
bool unfilter_png_together(uint8_t *lines, size_t stride, uint8_t const *above, size_t pixel_bytes) noexcept {
    constexpr size_t paeth_k = 4, least_paeths_k = 2;
    size_t paeths = 0;
    for (size_t row = 0; row != png_rows_together_k; ++row) {
        uint8_t const filter = lines[row * stride];
        if (filter > paeth_k) return false;
        paeths += filter == paeth_k;
    }
    size_t const columns = (stride - 1) / pixel_bytes;
    bool const pays = paeths >= least_paeths_k && columns >= png_rows_together_k;
    if (!pays || pixel_bytes > 4 || !__builtin_cpu_supports("avx2")) return false;
    unfilter_png_haswell(lines, stride, above, columns, pixel_bytes);
    return true;
}
#else
bool unfilter_png_together(uint8_t *, size_t, uint8_t const *, size_t) noexcept { return false; }
#endif

} // namespace uform
