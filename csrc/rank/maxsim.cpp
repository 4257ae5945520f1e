#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <limits>

#include "uform/rank.h"

#include "../core/failure.h"
#include "../kernels/packed.h"
#include "../kernels/scalars.h"
#include "../kernels/score/kernels.h"
#include "../model/workspace.h"
#include "vectors.h"

namespace uform {
namespace {

/** Rows of a document whose scores stay in L1. */
constexpr size_t block_rows_k = 96;
/** Documents that a thread takes at once, at the most; few of them are shared out evenly. */
constexpr size_t documents_a_unit_k = 8;
/** Narrower rows are multiplied as fast as they are screened. */
constexpr size_t least_screened_width_k = 32;

class maxsim_call_t {
  public:
    maxsim_call_t(uform_maxsim_t const &arguments, uform_cpu_class_t cpu_class) noexcept
        : arguments_(arguments), kernels_(score_kernels_of(cpu_class)), width_(arguments.queries.width),
          is_bf16_(arguments.queries.kind == uform_vectors_bf16_k && kernels_.bf16),
          kind_(is_bf16_ ? uform_vectors_bf16_k : uform_vectors_f32_k) {
        size_t const padded = is_bf16_ ? round_up(width_, padding_columns_k) : width_;
        row_bytes_ = padded * (is_bf16_ ? sizeof(bf16_t) : sizeof(float));
        tile_bytes_ = round_up(packed_bytes(width_, score_lanes_k, kind_), 64);
        is_screened_ = !is_bf16_ && kernels_.screen && width_ >= least_screened_width_k;
    }

    uform_status_t run(team_t &team) noexcept {
        size_t const queries = arguments_.query_count;
        for (size_t query = 0; query != queries; ++query) {
            tiles_ += tiles_of(query);
            most_tiles_ = std::max(most_tiles_, tiles_of(query));
        }
        if (!arguments_.candidates) most_tiles_ = tiles_;
        carver_t shared(nullptr), own(nullptr);
        take_shared(shared);
        scratch_t(own, *this);
        for (size_t slot = 0; slot <= team.threads(); ++slot)
            if (!team.scratch(slot, slot == team.threads() ? shared.used() : own.used()))
                return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "queries: no memory to pack them");
        carver_t carver(team.scratch(team.threads(), 0));
        take_shared(carver);
        size_t tile = 0;
        for (size_t query = 0; query != queries; ++query) {
            first_tiles_[query] = tile;
            for (size_t row = arguments_.query_offsets[query]; row < arguments_.query_offsets[query + 1];
                 row += score_lanes_k, ++tile)
                pack(tile, row, std::min(score_lanes_k, arguments_.query_offsets[query + 1] - row));
        }
        size_t const items = arguments_.candidates ? arguments_.candidate_offsets[queries] : arguments_.document_count;
        unit_ = std::clamp(items / (4 * team.threads()), size_t(1), documents_a_unit_k);
        team.run_each([&](size_t slot) noexcept {
            carver_t carver(team.scratch(slot, 0));
            scratch_t const scratch(carver, *this);
            if (arguments_.candidates) score_candidates(scratch);
            else score_all(scratch);
        });
        return uform_success_k;
    }

  private:
    /** 32 vectors of a query, or what is left of them. */
    struct tile_t {
        std::byte *packed;
        std::byte *rounded; /**< To BF16, and packed. */
        float *errors;      /**< See `score_screen_t`. */
        size_t count;
    };

    /** A thread's own memory. */
    struct scratch_t {
        std::byte *rows;   /**< Of a document's block, where they cannot be read in their place. */
        float *scores;     /**< [block rows, lanes] */
        float *maxima;     /**< [tiles, lanes] */
        std::byte *screen; /**< The screen's own. */

        scratch_t(carver_t &carver, maxsim_call_t const &call) noexcept
            : rows(carver.take((block_rows_k + score_slack_rows_k) * call.row_bytes_)),
              scores(carver.take<float>((block_rows_k + score_slack_rows_k) * score_lanes_k)),
              maxima(carver.take<float>(call.most_tiles_ * score_lanes_k)),
              screen(carver.take(call.is_screened_ ? score_screen_bytes(call.width_) : 0)) {}
    };

    void take_shared(carver_t &carver) noexcept {
        all_tiles_ = carver.take<tile_t>(tiles_);
        size_t const rounded_bytes = packed_bytes(width_, score_lanes_k, uform_vectors_bf16_k);
        for (size_t tile = 0; tile != tiles_; ++tile) {
            tile_t made {};
            made.packed = carver.take(tile_bytes_);
            if (is_screened_)
                made.rounded = carver.take(rounded_bytes), made.errors = carver.take<float>(score_lanes_k);
            if (all_tiles_) all_tiles_[tile] = made;
        }
        first_tiles_ = carver.take<size_t>(arguments_.query_count);
    }

    void pack(size_t index, size_t row, size_t count) const noexcept {
        tile_t &tile = all_tiles_[index];
        pack_queries(arguments_.queries, row, count, score_lanes_k, kind_, tile.packed);
        if (!is_screened_) return;
        tile.count = count;
        pack_queries(arguments_.queries, row, count, score_lanes_k, uform_vectors_bf16_k, tile.rounded);
        std::fill_n(tile.errors, score_lanes_k, 0.f);
        for (size_t lane = 0; lane != count; ++lane)
            tile.errors[lane] = error_of(reinterpret_cast<float const *>(row_of(arguments_.queries, row + lane)));
    }

    /**
     *  What rounding to BF16 may do to a query's product with a vector of unit length: by Cauchy and Schwarz at most
     *  the length of what the query loses, and 2^-8 of the length of what is left for what the other one loses. Sums
     *  of F32 add 2^-24 a number in each of the two products. Infinite where numbers are too small, or too large, for
     *  that to be the whole truth.
     */
    float error_of(float const *query) const noexcept {
        double square = 0, lost = 0;
        for (size_t column = 0; column != width_; ++column) {
            double const number = query[column], loss = number - double(bf16_to_f32(f32_to_bf16(query[column])));
            square += number * number, lost += loss * loss;
        }
        double const length = std::sqrt(square);
        if (!(length >= 1e-10 && length <= 1e10)) return std::numeric_limits<float>::infinity();
        return float(1.001 * (std::sqrt(lost) + length * (0x1.02p-8 + double(width_ + 2) * 0x1p-23)));
    }

    size_t rows_of(size_t query) const noexcept {
        return arguments_.query_offsets[query + 1] - arguments_.query_offsets[query];
    }
    size_t tiles_of(size_t query) const noexcept { return (rows_of(query) + score_lanes_k - 1) / score_lanes_k; }

    void score_all(scratch_t const &scratch) noexcept {
        size_t const documents = arguments_.document_count, queries = arguments_.query_count;
        for (size_t first; (first = next_.fetch_add(unit_)) < documents;)
            for (size_t document = first; document != std::min(documents, first + unit_); ++document) {
                find_maxima(scratch, document, 0, tiles_);
                for (size_t query = 0; query != queries; ++query)
                    arguments_.scores[query * documents + document] =
                        sum(scratch.maxima + first_tiles_[query] * score_lanes_k, query);
            }
    }

    void score_candidates(scratch_t const &scratch) noexcept {
        size_t const *offsets = arguments_.candidate_offsets, count = offsets[arguments_.query_count];
        for (size_t first; (first = next_.fetch_add(unit_)) < count;) {
            size_t query = size_t(std::upper_bound(offsets, offsets + arguments_.query_count + 1, first) - offsets - 1);
            for (size_t index = first; index != std::min(count, first + unit_); ++index) {
                while (index >= offsets[query + 1]) ++query;
                find_maxima(scratch, size_t(arguments_.candidates[index]), first_tiles_[query], tiles_of(query));
                arguments_.scores[index] = sum(scratch.maxima, query);
            }
        }
    }

    /** The largest product of each query vector of some tiles with the document's vectors. */
    void find_maxima(scratch_t const &scratch, size_t document, size_t first_tile, size_t tiles) const noexcept {
        size_t const begin = arguments_.document_offsets[document], end = arguments_.document_offsets[document + 1];
        std::fill_n(scratch.maxima, tiles * score_lanes_k, -std::numeric_limits<float>::infinity());
        size_t const most = is_screened_ ? score_screen_rows_k : block_rows_k;
        for (size_t row = begin, count; row != end; row += count) {
            count = std::min(most, end - row);
            if (!is_screened_) multiply(scratch, row, count, first_tile, tiles, scratch.maxima);
            else
                for (size_t tile = 0; tile != tiles; ++tile)
                    screen(scratch, row, count, first_tile + tile, scratch.maxima + tile * score_lanes_k);
        }
    }

    void screen(scratch_t const &scratch, size_t row, size_t count, size_t index, float *maxima) const noexcept {
        tile_t const &tile = all_tiles_[index];
        score_screen_t screen;
        screen.score.rows = row_of(arguments_.documents, row);
        screen.score.row_bytes = arguments_.documents.row_bytes;
        screen.score.count = count, screen.score.width = width_;
        screen.score.queries = tile.rounded;
        screen.queries = tile.packed, screen.query_count = tile.count;
        screen.errors = tile.errors, screen.scratch = scratch.screen, screen.maxima = maxima;
        if (kernels_.screen(screen)) return;
        for (size_t const end = row + count; row != end; row += count) {
            count = std::min(block_rows_k, end - row);
            multiply(scratch, row, count, index, 1, maxima);
        }
    }

    /** Takes all products of some rows with some tiles into the tiles' maxima. */
    void multiply(scratch_t const &scratch, size_t row, size_t count, size_t first_tile, size_t tiles,
                  float *maxima) const noexcept {
        score_t score;
        score.count = count;
        place(scratch, row, score);
        score.width = is_bf16_ ? row_bytes_ / sizeof(bf16_t) : width_;
        score.scores = scratch.scores;
        for (size_t tile = 0; tile != tiles; ++tile) {
            score.queries = all_tiles_[first_tile + tile].packed;
            (is_bf16_ ? kernels_.bf16 : kernels_.f32)(score);
            raise(maxima + tile * score_lanes_k, scratch.scores, score.count);
        }
    }

    /** Where the kernel reads rows: in their place, or in the scratch, widened or padded. */
    void place(scratch_t const &scratch, size_t row, score_t &score) const noexcept {
        uform_vectors_t const &documents = arguments_.documents;
        std::byte const *const from = row_of(documents, row);
        bool const is_wide = documents.kind == uform_vectors_bf16_k && !is_bf16_;
        bool const is_last = is_bf16_ && row + score.count + score_slack_rows_k > documents.count;
        bool const is_padded = is_bf16_ && width_ % padding_columns_k;
        score.rows = from, score.row_bytes = documents.row_bytes;
        if (!is_wide && !is_last && !is_padded) return;
        score.rows = scratch.rows, score.row_bytes = row_bytes_;
        for (size_t index = 0; index != score.count; ++index) {
            std::byte const *const source = from + index * documents.row_bytes;
            std::byte *const to = scratch.rows + index * row_bytes_;
            if (is_wide)
                for (size_t column = 0; column != width_; ++column)
                    reinterpret_cast<float *>(to)[column] =
                        bf16_to_f32(reinterpret_cast<bf16_t const *>(source)[column]);
            else {
                std::memcpy(to, source, width_ * sizeof(bf16_t));
                std::memset(to + width_ * sizeof(bf16_t), 0, row_bytes_ - width_ * sizeof(bf16_t));
            }
        }
    }

    /** Takes the scores of some rows into the maxima of their lanes. */
    static void raise(float *maxima, float const *scores, size_t rows) noexcept {
        float largest[score_lanes_k];
        std::memcpy(largest, maxima, sizeof(largest));
        for (size_t row = 0; row != rows; ++row, scores += score_lanes_k)
            for (size_t lane = 0; lane != score_lanes_k; ++lane)
                largest[lane] = scores[lane] > largest[lane] ? scores[lane] : largest[lane];
        std::memcpy(maxima, largest, sizeof(largest));
    }

    float sum(float const *maxima, size_t query) const noexcept {
        double total = 0;
        for (size_t index = 0; index != rows_of(query); ++index) total += maxima[index];
        return static_cast<float>(total);
    }

    uform_maxsim_t const &arguments_;
    score_kernels_t const &kernels_;
    size_t const width_;
    bool const is_bf16_; /**< BF16 products; otherwise F32 ones, of numbers that may be widened. */
    uform_vectors_kind_t const kind_;
    size_t row_bytes_ = 0; /**< Of a row in the scratch. */
    size_t tile_bytes_ = 0;
    size_t tiles_ = 0;
    size_t most_tiles_ = 0; /**< That a document meets at once. */
    bool is_screened_ = false;
    tile_t *all_tiles_ = nullptr;
    size_t *first_tiles_ = nullptr; /**< [queries] */
    size_t unit_ = 1;               /**< Documents, or candidates, that a thread takes at once. */
    std::atomic<size_t> next_ {0};
};

uform_status_t check_candidates(uform_maxsim_t const &arguments) noexcept {
    constexpr uform_status_t invalid_k = uform_invalid_argument_k;
    if (!arguments.candidate_offsets) {
        if (!arguments.candidates) return uform_success_k;
        return fail(invalid_k, UFORM_NO_ITEM, "candidate_offsets: NULL, but there are candidates");
    }
    size_t const *offsets = arguments.candidate_offsets;
    if (uform_status_t const status = check_offsets(offsets, arguments.query_count, SIZE_MAX, "candidate_offsets"))
        return status;
    if (!arguments.candidates && offsets[arguments.query_count])
        return fail(invalid_k, UFORM_NO_ITEM, "candidates: NULL, but there are %zu", offsets[arguments.query_count]);
    for (size_t query = 0; query != arguments.query_count; ++query)
        for (size_t index = offsets[query]; index != offsets[query + 1]; ++index) {
            int64_t const document = arguments.candidates[index];
            if (document < 0 || size_t(document) >= arguments.document_count)
                return fail(invalid_k, query, "candidates: query %zu names document %lld of %zu", query,
                            static_cast<long long>(document), arguments.document_count);
        }
    return uform_success_k;
}

} // namespace
} // namespace uform

uform_status_t uform_maxsim(uform_maxsim_t const *given) {
    using namespace uform;
    if (!given) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arguments: must not be NULL");
    uform_maxsim_t arguments = *given;
    if (uform_status_t const status = check_vectors(arguments.queries, "queries")) return status;
    if (uform_status_t const status = check_vectors(arguments.documents, "documents")) return status;
    for (uform_vectors_t const *vectors : {&arguments.queries, &arguments.documents})
        if (vectors->kind != uform_vectors_f32_k && vectors->kind != uform_vectors_bf16_k)
            return fail(uform_unsupported_layout_k, UFORM_NO_ITEM, "%s: F32 or BF16 is needed, not %s",
                        vectors == &arguments.queries ? "queries" : "documents",
                        uform_vectors_kind_name(vectors->kind));
    if (uform_status_t const status = check_pair(arguments.queries, arguments.documents, "documents")) return status;
    if (uform_status_t const status =
            check_offsets(arguments.query_offsets, arguments.query_count, arguments.queries.count, "query_offsets"))
        return status;
    if (uform_status_t const status = check_offsets(arguments.document_offsets, arguments.document_count,
                                                    arguments.documents.count, "document_offsets"))
        return status;
    if (uform_status_t const status = check_candidates(arguments)) return status;
    // An empty list of candidates may have no address.
    static constexpr int64_t none_k = 0;
    if (arguments.candidate_offsets && !arguments.candidates) arguments.candidates = &none_k;
    size_t const scores = arguments.candidate_offsets ? arguments.candidate_offsets[arguments.query_count]
                                                      : arguments.query_count * arguments.document_count;
    if (!arguments.query_count || !scores) return uform_success_k;
    if (!arguments.scores) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "scores: must not be NULL");
    call_threads_t threads;
    if (uform_status_t const status = threads.acquire(arguments.executor)) return status;
    return maxsim_call_t(arguments, threads.cpu_class()).run(threads.team());
}
