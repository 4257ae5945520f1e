/** How many patches a picture is cut into. */
#pragma once
#include <algorithm>
#include <cstdint>

#include "media/codecs.h"

namespace uform {

/** Patches along each side. */
struct grid_t {
    uint32_t rows = 1;
    uint32_t columns = 1;
};

/** The largest whole number whose square is at most `value`. */
constexpr uint64_t square_root(uint64_t value) noexcept {
    uint64_t root = 0;
    for (uint64_t bit = uint64_t(1) << 31; bit; bit /= 2)
        if ((root + bit) * (root + bit) <= value) root += bit;
    return root;
}

/**
 *  The grid of a picture of `side` pixels a patch: its shape is the picture's as nearly as whole patches allow, it has
 *  at most `most` patches, and no more than the picture fills. `floor(sqrt(most * height / width))` rows and
 *  `floor(sqrt(most * width / height))` columns, at least 1, at most `most`, at most `ceil(height / side)` rows and
 *  `ceil(width / side)` columns. Sides of the picture are below 2^31, `most` is below 2^32 and not 0.
 */
constexpr grid_t grid_of(picture_t picture, uint32_t side, uint32_t most) noexcept {
    auto const along = [&](uint64_t length, uint64_t across) {
        uint64_t const wanted = square_root(most * length / across), filled = (length + side - 1) / side;
        return static_cast<uint32_t>(std::clamp<uint64_t>(std::min(wanted, filled), 1, most));
    };
    return {along(picture.height, picture.width), along(picture.width, picture.height)};
}

static_assert(grid_of({1024, 768}, 16, 196).rows == 12 && grid_of({1024, 768}, 16, 196).columns == 16);
static_assert(grid_of({224, 224}, 16, 196).rows == 14 && grid_of({20, 1}, 16, 196).columns == 2);
static_assert(grid_of({100000, 1}, 16, 196).rows == 1 && grid_of({100000, 1}, 16, 196).columns == 196);

} // namespace uform
