#include "media_call.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <new>

#include "surfaces.h"

namespace uform {
namespace {

/** Looks into the headers of all items, on all threads, before memory is asked for. */
class probing_t {
  public:
    probing_t(media_call_t const &call, media_source_t const &source, segment_t *segments) noexcept
        : call_(call), source_(source), segments_(segments) {}

    /** Fills in `segments` [count]. The failure of the first item that has one is noted. */
    uform_status_t run(team_t &team) noexcept {
        team.run_each([this](size_t) noexcept {
            for (size_t item; (item = next_++) < call_.count;) probe(item);
        });
        if (!failure_.status) return uform_success_k;
        return fail(failure_.status, failure_.item, "%s", failure_.message);
    }

  private:
    void probe(size_t item) noexcept {
        segment_t &segment = *new (segments_ + item) segment_t;
        segment.modality = call_.modality;
        segment.item = item;
        fault_t fault;
        if (!source_.probe(item, segment, fault)) return;
        segment.times = 0;
        if (!source_.refuse_item(item, fault)) return;
        std::lock_guard<std::mutex> lock(mutex_);
        if (!failure_.status || item < failure_.item) failure_ = last_failure();
        next_ = call_.count; // Items before this one have been taken already: the first one to fail is always found.
    }

    media_call_t const &call_;
    media_source_t const &source_;
    segment_t *segments_;
    std::atomic<size_t> next_ {0};
    std::mutex mutex_;
    uform_failure_t failure_ {uform_success_k, UFORM_NO_ITEM, {}};
};

/** Gives each segment its first row, at most; drops those without a token. Answers how many are left. */
size_t keep_segments(segment_t *segments, size_t count, size_t &rows) noexcept {
    size_t kept = 0;
    rows = 0;
    for (size_t item = 0; item != count; ++item) {
        segment_t segment = segments[item];
        segment.row = rows;
        rows += segment.tokens();
        if (segment.tokens()) segments[kept++] = segment;
    }
    return kept;
}

/** Closes the gaps between the rows of items that came to have fewer tokens. */
void close_gaps(segment_t const *segments, size_t count, size_t const *tokens, std::byte *rows,
                size_t row_bytes) noexcept {
    size_t end = 0;
    for (size_t index = 0; index != count; ++index) {
        segment_t const &segment = segments[index];
        size_t const some = tokens[segment.item];
        if (segment.row != end) std::memmove(rows + end * row_bytes, rows + segment.row * row_bytes, some * row_bytes);
        end += some;
    }
}

} // namespace

limits_t limits_of(uform_media_limits_t const &asked) noexcept {
    limits_t limits;
    if (asked.pixels) limits.pixels = asked.pixels;
    if (asked.seconds) limits.seconds = asked.seconds;
    if (asked.bytes) limits.bytes = asked.bytes;
    return limits;
}

uform_status_t media_call_t::run(media_source_t &source, arena_hold_t const &arena, team_t &team,
                                 media_tally_t &tally) const noexcept {
    config_t const &config = model->config;
    size_t const scalar_bytes = uform_scalar_size(scalar);
    arena->rewind();

    layout_t plan_layout;
    size_t const segments_at = plan_layout.add(count, sizeof(segment_t));
    size_t const groups_at = plan_layout.add(count, sizeof(group_t));
    size_t const tokens_at = plan_layout.add(count, sizeof(size_t));
    size_t const notes_at = plan_layout.add(count, sizeof(item_notes_t));
    std::byte *const plan_memory = plan_layout.overflows() ? nullptr : arena->plan.reserve(plan_layout.bytes());
    if (!plan_memory)
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "%s: no memory to plan %zu of them", source.name, count);
    auto *const segments = reinterpret_cast<segment_t *>(plan_memory + segments_at);
    auto *const tokens = reinterpret_cast<size_t *>(plan_memory + tokens_at);
    auto *const notes = reinterpret_cast<item_notes_t *>(plan_memory + notes_at);
    std::fill_n(tokens, count, size_t(0));
    std::uninitialized_fill_n(notes, count, item_notes_t {});
    if (faults) std::fill_n(faults, count, uform_item_fault_t {});
    source.faults = faults;
    source.notes = notes;
    if (uform_status_t const status = probing_t(*this, source, segments).run(team)) return status;

    size_t rows = 0;
    size_t const kept = keep_segments(segments, count, rows);
    bool const has_offsets = states || token_vectors;
    layout_t layout;
    size_t const embeddings_at = layout.add(embeddings ? count : 0, config.dimensions * scalar_bytes);
    size_t const states_at = layout.add(states ? rows : 0, config.hidden * scalar_bytes);
    size_t const token_vectors_at = layout.add(token_vectors ? rows : 0, config.token_width * scalar_bytes);
    size_t const offsets_at = layout.add(has_offsets ? count + 1 : 0, sizeof(size_t));
    if (layout.overflows())
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "%s: their outputs have more bytes than memory can",
                    source.name);
    std::byte *const data = arena->land(layout.bytes());
    if (!data) return last_failure().status;
    // Zero is all bits clear in each scalar. What goes through the network is written over.
    if (embeddings && kept != count) std::memset(data + embeddings_at, 0, count * config.dimensions * scalar_bytes);

    if (kept) {
        batch_t batch;
        batch.segments = segments;
        batch.count = kept;
        batch.groups = reinterpret_cast<group_t *>(plan_memory + groups_at);
        batch.patches = &source;
        batch.tokens = tokens;
        batch.scalar = scalar;
        if (embeddings) batch.embeddings = data + embeddings_at;
        if (states) batch.states = data + states_at;
        if (token_vectors) batch.token_vectors = data + token_vectors_at;
        batch.progress = progress;
        batch.progress_context = progress_context;
        batch.completed = count - kept;
        batch.total = count;
        switch (uform_status_t const status = forward(*model, cpu_class, batch, team)) {
        case uform_success_k: break;
        case uform_cancelled_k: return cancelled();
        case uform_out_of_memory_k:
            return fail(status, UFORM_NO_ITEM, "%s: no memory to decode and encode them", source.name);
        default: return status; // Of an item, noted.
        }
    }
    else if (count && progress && !progress(progress_context, count, count)) {
        return cancelled();
    }

    tally = {};
    for (size_t item = 0; item != count; ++item) {
        tally.tokens += tokens[item];
        bool const is_skipped = faults && faults[item].status;
        tally.malformed += is_skipped;
        if (is_skipped) continue;
        tally.truncated += notes[item].truncated;
        tally.bytes += source.bytes(item);
        tally.extent += notes[item].extent;
    }
    uint64_t const generation = arena->generation();
    auto *const offsets = reinterpret_cast<size_t *>(data + offsets_at);
    if (has_offsets) {
        offsets[0] = 0;
        for (size_t item = 0; item != count; ++item) offsets[item + 1] = offsets[item] + tokens[item];
    }
    if (embeddings) *embeddings = rows_at(data + embeddings_at, count, config.dimensions, scalar, generation);
    if (states) {
        close_gaps(segments, kept, tokens, data + states_at, config.hidden * scalar_bytes);
        *states = {rows_at(data + states_at, tally.tokens, config.hidden, scalar, generation), offsets, count};
    }
    if (token_vectors) {
        close_gaps(segments, kept, tokens, data + token_vectors_at, config.token_width * scalar_bytes);
        *token_vectors = {rows_at(data + token_vectors_at, tally.tokens, config.token_width, scalar, generation),
                          offsets, count};
    }
    return uform_success_k;
}

} // namespace uform
