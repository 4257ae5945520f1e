/**
 *  Undoes the filters of four rows at once. A pixel waits for the one on its left, which is most of the time that a row
 *  takes alone; so each row follows the one above at a distance of one pixel, and what a step makes of one row is what
 *  lies above in the next row's step.
 */
#if defined(__x86_64__)
#include "media/images/png_unfilter.h"

#include <cstring>

#include "kernels/simd/intrinsics.h"

#define UFORM_TARGET "avx2"
#include "kernels/simd/begin.h"

namespace uform {
namespace {

constexpr size_t rows_k = png_rows_together_k;
static_assert(rows_k == 4);

/** Of each row, in four lanes of 16 bits. */
struct filters_t {
    __m256i sub, up, average, paeth;

    filters_t(uint8_t const *lines, size_t stride) noexcept {
        __m128i const four = _mm_setr_epi32(lines[0], lines[stride], lines[2 * stride], lines[3 * stride]);
        __m256i const numbers = _mm256_shuffle_epi8(_mm256_cvtepu32_epi64(four),
                                                    _mm256_setr_epi8(0, 1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9, 0,
                                                                     1, 0, 1, 0, 1, 0, 1, 8, 9, 8, 9, 8, 9, 8, 9));
        sub = _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(1)), up = _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(2));
        average = _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(3));
        paeth = _mm256_cmpeq_epi16(numbers, _mm256_set1_epi16(4));
    }
};

template <size_t pixel_bytes_> class rows_t {
  public:
    rows_t(uint8_t *lines, size_t stride, uint8_t const *above, size_t columns) noexcept
        : first_(lines + 1), above_(above), apart_(ptrdiff_t(stride) - ptrdiff_t(pixel_bytes_)), columns_(columns),
          filters_(lines, stride) {}

    void undo() noexcept {
        raw_ = load(0);
        size_t step = 0;
        for (; step != rows_k - 1; ++step) undo_edge(step);
        for (; step != columns_; ++step) {
            predict_and_add(step);
            // The next pixels are read before their first bytes may be overwritten.
            raw_ = load(step + 1);
            store(step);
        }
        for (; step != columns_ + rows_k - 1; ++step) undo_edge(step);
    }

  private:
    /** Of the pixel that a row has in a step. */
    uint8_t *place(size_t row, size_t step) const noexcept {
        return first_ + ptrdiff_t(row) * apart_ + step * pixel_bytes_;
    }

    static int load_pixel(uint8_t const *pixel) noexcept {
        int four;
        std::memcpy(&four, pixel, sizeof(four));
        return four;
    }

    /** Also of rows that have no pixel in this step: of what lies there. */
    __m256i load(size_t step) const noexcept {
        return _mm256_cvtepu8_epi16(_mm_setr_epi32(load_pixel(place(0, step)), load_pixel(place(1, step)),
                                                   load_pixel(place(2, step)), load_pixel(place(3, step))));
    }

    void predict_and_add(size_t step) noexcept {
        // Above is the row before them, or what was just made of the others.
        __m128i const top = _mm_cvtepu8_epi16(_mm_cvtsi32_si128(load_pixel(above_ + step * pixel_bytes_)));
        __m256i const moved = _mm256_permute4x64_epi64(left_, _MM_SHUFFLE(2, 1, 0, 0));
        __m256i const up = _mm256_blend_epi32(moved, _mm256_castsi128_si256(top), 3), corner = corner_;
        __m256i const rise = _mm256_sub_epi16(up, corner);
        __m256i const from_left = _mm256_abs_epi16(rise);
        __m256i const from_up = _mm256_abs_epi16(_mm256_sub_epi16(left_, corner));
        __m256i const from_corner = _mm256_abs_epi16(_mm256_add_epi16(left_, _mm256_sub_epi16(rise, corner)));
        // Left wins over up, and up over the corner, where they are as near.
        __m256i const second = _mm256_min_epi16(from_up, from_corner);
        __m256i const nearer = _mm256_blendv_epi8(up, corner, _mm256_cmpgt_epi16(from_up, from_corner));
        __m256i const paeth = _mm256_blendv_epi8(left_, nearer, _mm256_cmpgt_epi16(from_left, second));
        __m256i const average = _mm256_srli_epi16(_mm256_add_epi16(left_, up), 1);
        __m256i const others =
            _mm256_or_si256(_mm256_or_si256(_mm256_and_si256(left_, filters_.sub), _mm256_and_si256(up, filters_.up)),
                            _mm256_and_si256(average, filters_.average));
        __m256i const predicted = _mm256_or_si256(others, _mm256_and_si256(paeth, filters_.paeth));
        left_ = _mm256_add_epi8(raw_, predicted);
        corner_ = up;
    }

    /** In four lanes of 32 bits. */
    __m128i pixels() const noexcept {
        return _mm_packus_epi16(_mm256_castsi256_si128(left_), _mm256_extracti128_si256(left_, 1));
    }

    void store(size_t step) const noexcept {
        __m128i const four = pixels();
        int const values[rows_k] = {_mm_cvtsi128_si32(four), _mm_extract_epi32(four, 1), _mm_extract_epi32(four, 2),
                                    _mm_extract_epi32(four, 3)};
        // Three bytes are written with the one after them, which the next step writes again.
        constexpr size_t written = pixel_bytes_ == 3 ? 4 : pixel_bytes_;
        for (size_t row = 0; row != rows_k; ++row) std::memcpy(place(row, step), &values[row], written);
    }

    /** A step in which some rows have no pixel: they have not begun, or have ended. */
    void undo_edge(size_t step) noexcept {
        predict_and_add(step);
        __m256i const rows = _mm256_setr_epi64x(0, 1, 2, 3);
        left_ = _mm256_andnot_si256(_mm256_cmpgt_epi64(rows, _mm256_set1_epi64x((long long)step)), left_);
        uint8_t values[rows_k * 4];
        _mm_storeu_si128(reinterpret_cast<__m128i *>(values), pixels());
        raw_ = load(step + 1);
        for (size_t row = 0; row != rows_k; ++row)
            if (row <= step && step - row < columns_) std::memcpy(place(row, step), values + row * 4, pixel_bytes_);
    }

    uint8_t *first_;
    uint8_t const *above_;
    ptrdiff_t apart_; /**< From the place of a row's pixel to that of the next row's in the same step. */
    size_t columns_;
    filters_t const filters_;
    __m256i raw_ = _mm256_setzero_si256(), left_ = _mm256_setzero_si256(), corner_ = _mm256_setzero_si256();
};

} // namespace

void unfilter_png_haswell(uint8_t *lines, size_t stride, uint8_t const *above, size_t columns,
                          size_t pixel_bytes) noexcept {
    switch (pixel_bytes) {
    case 1: return rows_t<1>(lines, stride, above, columns).undo();
    case 2: return rows_t<2>(lines, stride, above, columns).undo();
    case 3: return rows_t<3>(lines, stride, above, columns).undo();
    default: return rows_t<4>(lines, stride, above, columns).undo();
    }
}

} // namespace uform

#include "kernels/simd/end.h"
#endif
