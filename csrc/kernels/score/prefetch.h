/** Rows on their way from memory. Included behind a class's header. Internal linkage: see there. */
#pragma once
#include <cstddef>

namespace uform {
namespace {

/** Far enough ahead of what is worked on for memory to answer; measured. */
constexpr size_t prefetch_distance_k = 32768;

/**
 *  Asks for as many bytes as the rows that come next have, some way ahead: a dozen rows are read side by side, which
 * the system's own prefetching does not take for one stream. Past the last row nothing is lost but time.
 */
inline void prefetch_rows(void const *rows, size_t bytes) noexcept {
    auto const *ahead = static_cast<char const *>(rows) + prefetch_distance_k;
    for (size_t offset = 0; offset < bytes; offset += 64) __builtin_prefetch(ahead + offset);
}

} // namespace
} // namespace uform
