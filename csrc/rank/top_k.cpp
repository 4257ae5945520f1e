#include <algorithm>
#include <atomic>
#include <cstring>
#include <limits>

#include "uform/rank.h"

#include "../core/failure.h"
#include "../kernels/score/kernels.h"
#include "../model/workspace.h"
#include "vectors.h"

namespace uform {
namespace {

/** Rows whose scores stay in L1 between the kernel and the choice. */
constexpr size_t block_rows_k = 96;
/** Bytes of the corpus that a thread takes at once: they meet all queries while they are in its L2. */
constexpr size_t chunk_bytes_k = size_t(1) << 18;

/** A row of the corpus that may be among the best: the larger the score, then the smaller the id, the better. */
template <typename score_type_> struct found_t {
    score_type_ score;
    int64_t id;

    friend bool operator<(found_t const &a, found_t const &b) noexcept {
        return a.score > b.score || (a.score == b.score && a.id < b.id);
    }
};

/** `lanes_`: of the kernel. Distances are negated, so that the larger is the better. */
template <typename score_type_, size_t lanes_, bool is_distance_ = false> class top_k_call_t {
    using found_t = uform::found_t<score_type_>;
    /** Rows whose scores are compared with the thresholds together. */
    static constexpr size_t group_rows_k = lanes_ == 1 ? 16 : 1;
    static_assert(block_rows_k % group_rows_k == 0);
    static constexpr bool is_float_k = std::numeric_limits<score_type_>::has_infinity;
    static constexpr score_type_ least_k =
        is_float_k ? -std::numeric_limits<score_type_>::infinity() : std::numeric_limits<score_type_>::lowest();

  public:
    top_k_call_t(uform_top_k_t const &arguments, score_kernel_t kernel) noexcept
        : arguments_(arguments), kernel_(kernel), queries_(arguments.queries.count),
          tiles_((queries_ + lanes_ - 1) / lanes_), k_(arguments.k),
          tile_bytes_(round_up(packed_bytes(arguments.queries.width, lanes_, arguments.queries.kind), 64)),
          chunk_rows_(
              std::max(block_rows_k, chunk_bytes_k / arguments.corpus.row_bytes / block_rows_k * block_rows_k)) {}

    uform_status_t run(team_t &team) noexcept {
        size_t const threads = team.threads();
        carver_t shared(nullptr), own(nullptr);
        shared.take(tiles_ * tile_bytes_);
        scratch_t(own, *this);
        size_t capacity = 0;
        bool const overflows = __builtin_mul_overflow(k_, 2 * sizeof(found_t), &capacity) ||
                               __builtin_mul_overflow(capacity, queries_ + 1, &capacity);
        for (size_t slot = 0; slot <= threads; ++slot)
            if (overflows || !team.scratch(slot, slot == threads ? shared.used() : own.used()))
                return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "k: no memory for %zu results of %zu queries", k_,
                            queries_);
        packed_ = team.scratch(threads, 0);
        for (size_t tile = 0; tile != tiles_; ++tile)
            pack_queries(arguments_.queries, tile * lanes_, std::min(lanes_, queries_ - tile * lanes_), lanes_,
                         arguments_.queries.kind, packed_ + tile * tile_bytes_);
        team.run_each([&](size_t slot) noexcept {
            carver_t carver(team.scratch(slot, 0));
            scratch_t scratch(carver, *this);
            scratch.begin(*this);
            if (slot == 0 && arguments_.merge) recall(scratch);
            search(scratch);
            team.barrier();
            for (size_t query = slot; query < queries_; query += threads) collect(team, query);
        });
        return uform_success_k;
    }

  private:
    /** A thread's own memory. */
    struct scratch_t {
        score_type_ *scores;     /**< [block rows, lanes] */
        score_type_ *thresholds; /**< [queries, padded to lanes]: scores up to that are none of the best. */
        size_t *counts;          /**< [queries] */
        found_t *found;          /**< [queries, 2 * k]: the best so far, and what came since. */

        scratch_t(carver_t &carver, top_k_call_t const &call) noexcept
            : scores(carver.take<score_type_>(block_rows_k * lanes_)),
              thresholds(carver.take<score_type_>(call.tiles_ * lanes_)), counts(carver.take<size_t>(call.queries_)),
              found(carver.take<found_t>(2 * call.k_ * call.queries_)) {}

        void begin(top_k_call_t const &call) noexcept {
            std::fill_n(counts, call.queries_, size_t(0));
            // Lanes without a query have scores of nothing, and no need of them.
            std::fill_n(thresholds, call.tiles_ * lanes_, std::numeric_limits<score_type_>::max());
            std::fill_n(thresholds, call.queries_, least_k);
            std::fill_n(scores, block_rows_k * lanes_, score_type_(0));
        }
    };

    /** Takes a row in, and drops all but the best once there is no room. */
    void add(scratch_t const &scratch, size_t query, found_t const &one) const noexcept {
        found_t *const found = scratch.found + query * 2 * k_;
        found[scratch.counts[query]++] = one;
        if (scratch.counts[query] != 2 * k_) return;
        std::nth_element(found, found + (k_ - 1), found + 2 * k_);
        scratch.counts[query] = k_;
        scratch.thresholds[query] = found[k_ - 1].score;
    }

    /** What earlier blocks of the corpus brought. */
    void recall(scratch_t const &scratch) const noexcept {
        for (size_t query = 0; query != queries_; ++query)
            for (size_t index = 0; index != k_; ++index) {
                int64_t const id = arguments_.ids[query * k_ + index];
                score_type_ const score = static_cast<score_type_ const *>(arguments_.scores)[query * k_ + index];
                if (id >= 0) add(scratch, query, {is_distance_ ? score_type_(-score) : score, id});
            }
    }

    void search(scratch_t const &scratch) noexcept {
        size_t const rows = arguments_.corpus.count;
        for (size_t first; (first = next_.fetch_add(chunk_rows_)) < rows;) {
            size_t const end = std::min(rows, first + chunk_rows_);
            for (size_t tile = 0; tile != tiles_; ++tile)
                for (size_t row = first; row < end; row += block_rows_k)
                    search_block(scratch, tile, row, std::min(block_rows_k, end - row));
        }
    }

    void search_block(scratch_t const &scratch, size_t tile, size_t first, size_t count) const noexcept {
        score_t score;
        score.rows = row_of(arguments_.corpus, first);
        score.row_bytes = arguments_.corpus.row_bytes;
        score.count = count;
        score.width = is_distance_ ? arguments_.queries.width / 8 : arguments_.queries.width;
        score.queries = packed_ + tile * tile_bytes_;
        score.scores = scratch.scores;
        kernel_(score);
        score_type_ const *thresholds = scratch.thresholds + tile * lanes_;
        for (size_t row = 0; row < count; row += group_rows_k) {
            // Nearly all rows end here. What equals the worst of the best has a larger id. Comparisons are false for
            // what is not a number. Rows behind the last have scores of an earlier block: at worst they cost time.
            score_type_ const *scores = scratch.scores + row * lanes_;
            int any = 0;
            for (size_t index = 0; index != group_rows_k; ++index)
                for (size_t lane = 0; lane != lanes_; ++lane)
                    any |= value(scores[index * lanes_ + lane]) > thresholds[lane];
            if (!any) continue;
            for (size_t index = row; index != std::min(row + group_rows_k, count); ++index, scores += lanes_)
                for (size_t lane = 0; lane != lanes_; ++lane) {
                    size_t const query = tile * lanes_ + lane;
                    if (query < queries_ && value(scores[lane]) > thresholds[lane])
                        add(scratch, query, {value(scores[lane]), arguments_.first_id + int64_t(first + index)});
                }
        }
    }

    static score_type_ value(score_type_ score) noexcept { return is_distance_ ? -score : score; }

    /** The best of what all threads found for a query. */
    void collect(team_t &team, size_t query) const noexcept {
        carver_t carver(team.scratch(0, 0));
        scratch_t const first(carver, *this);
        found_t *const best = first.found + query * 2 * k_;
        size_t count = keep_best(best, first.counts[query]);
        for (size_t slot = 1; slot != team.threads(); ++slot) {
            carver_t other_carver(team.scratch(slot, 0));
            scratch_t const other(other_carver, *this);
            found_t *const found = other.found + query * 2 * k_;
            size_t const more = keep_best(found, other.counts[query]);
            std::copy_n(found, more, best + count);
            count = keep_best(best, count + more);
        }
        std::sort(best, best + count);
        auto *const scores = static_cast<score_type_ *>(arguments_.scores) + query * k_;
        int64_t *const ids = arguments_.ids + query * k_;
        for (size_t index = 0; index != k_; ++index) {
            scores[index] = index < count ? value(best[index].score) : score_type_(0);
            ids[index] = index < count ? best[index].id : -1;
        }
    }

    size_t keep_best(found_t *found, size_t count) const noexcept {
        if (count <= k_) return count;
        std::nth_element(found, found + (k_ - 1), found + count);
        return k_;
    }

    uform_top_k_t const &arguments_;
    score_kernel_t const kernel_;
    size_t const queries_, tiles_, k_, tile_bytes_, chunk_rows_;
    std::byte *packed_ = nullptr;
    std::atomic<size_t> next_ {0};
};

uform_status_t run(uform_top_k_t const &arguments, score_kernels_t const &kernels, team_t &team) noexcept {
    constexpr size_t half = score_half_lanes_k, narrow = score_narrow_lanes_k, i8 = score_i8_lanes_k,
                     bits = score_bits_lanes_k;
    switch (arguments.queries.kind) {
    case uform_vectors_i8_k:
        if (arguments.queries.count == 1) return top_k_call_t<int32_t, 1>(arguments, kernels.i8_one).run(team);
        return top_k_call_t<int32_t, i8>(arguments, kernels.i8).run(team);
    case uform_vectors_bits_k:
        if (arguments.queries.count == 1) return top_k_call_t<int32_t, 1, true>(arguments, kernels.bits_one).run(team);
        return top_k_call_t<int32_t, bits, true>(arguments, kernels.bits).run(team);
    default: break;
    }
    if (arguments.queries.count <= narrow) return top_k_call_t<float, narrow>(arguments, kernels.f32_narrow).run(team);
    if (arguments.queries.count <= half) return top_k_call_t<float, half>(arguments, kernels.f32_half).run(team);
    return top_k_call_t<float, score_lanes_k>(arguments, kernels.f32).run(team);
}

} // namespace
} // namespace uform

uform_status_t uform_top_k(uform_top_k_t const *given) {
    using namespace uform;
    if (!given) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arguments: must not be NULL");
    uform_top_k_t arguments = *given;
    if (uform_status_t const status = check_vectors(arguments.queries, "queries")) return status;
    if (uform_status_t const status = check_vectors(arguments.corpus, "corpus")) return status;
    if (arguments.queries.kind == uform_vectors_bf16_k)
        return fail(uform_unsupported_layout_k, UFORM_NO_ITEM, "queries: F32, I8 or bits are needed, not BF16");
    if (uform_status_t const status = check_pair(arguments.queries, arguments.corpus, "corpus")) return status;
    if (!arguments.k) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "k: must not be 0");
    if (arguments.first_id < 0 || arguments.corpus.count > size_t(INT64_MAX - arguments.first_id))
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "first_id: %lld is negative, or too large for the corpus",
                    static_cast<long long>(arguments.first_id));
    if (!arguments.queries.count) return uform_success_k;
    if (!arguments.scores || !arguments.ids)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "%s: must not be NULL",
                    arguments.scores ? "ids" : "scores");
    call_threads_t threads;
    if (uform_status_t const status = threads.acquire(arguments.executor)) return status;
    return run(arguments, score_kernels_of(threads.cpu_class()), threads.team());
}
