#include "plan.h"

#include <algorithm>

namespace uform {
namespace {

/** FLOP of a segment in all blocks: products by the tokens, attention by their pairs. */
double cost_of(config_t const &config, double tokens) noexcept {
    double const hidden = static_cast<double>(config.hidden), width = static_cast<double>(config.width);
    double const attended =
        config.local_window ? std::min(tokens, 2.0 * static_cast<double>(config.local_window)) : tokens;
    double const block = tokens * (8 * hidden * hidden + 6 * hidden * width) + 4 * tokens * attended * hidden;
    return block * static_cast<double>(config.depth);
}

struct builder_t {
    config_t const &config;
    batch_t const &batch;
    group_t *groups;
    size_t count = 0;

    void add(group_t &group, size_t index) const noexcept {
        size_t const tokens = batch.segments[index].tokens();
        if (group.count == 0) group.first = index;
        group.count += 1;
        group.tokens += tokens;
        group.longest = std::max(group.longest, tokens);
        group.cost += cost_of(config, static_cast<double>(tokens));
    }

    void close(group_t &group) noexcept {
        if (group.count) groups[count++] = group;
        group = group_t {};
    }

    /** Groups of the segments that `alone` is false for, of `most_tokens` unless one segment has more. */
    template <typename predicate_type_> void gather(size_t most_tokens, predicate_type_ &&alone) noexcept {
        group_t group;
        for (size_t index = 0; index != batch.count; ++index) {
            if (alone(index)) {
                close(group);
                continue;
            }
            if (group.tokens + batch.segments[index].tokens() > most_tokens) close(group);
            add(group, index);
        }
        close(group);
    }
};

} // namespace

plan_t plan(config_t const &config, batch_t const &batch, size_t threads, size_t group_tokens) noexcept {
    group_t *const groups = batch.groups;
    builder_t builder {config, batch, groups};
    double total = 0;
    for (size_t index = 0; index != batch.count; ++index)
        total += cost_of(config, static_cast<double>(batch.segments[index].tokens()));
    double const fair = total / static_cast<double>(threads * groups_per_thread_k);
    auto const is_large = [&](size_t index) {
        size_t const tokens = batch.segments[index].tokens();
        return threads > 1 && cost_of(config, static_cast<double>(tokens)) > fair;
    };

    for (size_t index = 0; index != batch.count; ++index) {
        if (!is_large(index)) continue;
        group_t group;
        builder.add(group, index);
        builder.close(group);
    }
    size_t shared = builder.count;
    builder.gather(group_tokens, is_large);
    if (threads > 1 && builder.count - shared < threads * groups_per_thread_k) {
        // Too few groups for all threads. Small segments may all be "large" of a small batch: gather these as well.
        builder.count = 0;
        builder.gather(group_tokens * threads, [](size_t) { return false; });
        shared = builder.count;
    }

    auto const costlier = [](group_t const &a, group_t const &b) { return a.cost > b.cost; };
    std::sort(groups, groups + shared, costlier);
    std::sort(groups + shared, groups + builder.count, costlier);
    return {groups, builder.count, shared};
}

} // namespace uform
