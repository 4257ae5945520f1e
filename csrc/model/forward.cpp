#include "forward.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>

#include "../core/failure.h"
#include "landing.h"
#include "layers.h"
#include "plan.h"
#include "steps.h"

namespace uform {
namespace {

/** With fewer tokens a thread, sharing out outputs beats sharing out tokens: each weight is then read once in all. */
constexpr size_t tokens_worth_a_thread_k = 96;

/** One call: what its threads have in common. */
class pass_t {
  public:
    pass_t(uform_model_t const &model, kernels_t const &kernels, batch_t const &batch, team_t &team) noexcept
        : model_(model), kernels_(kernels), batch_(batch), team_(team), wanted_(model, batch),
          completed_(batch.completed), plan_(plan(model.config, batch, team.threads(), kernels.group_tokens)) {}

    uform_status_t run() noexcept {
        // Every slot's scratch is grown here: inside the bodies, threads only look it up.
        for (size_t slot = 0; slot != team_.threads(); ++slot)
            if (!team_.scratch(slot, scratch_bytes(slot))) return uform_out_of_memory_k;
        next_ = plan_.shared;
        team_.run_each([this](size_t slot) noexcept {
            for (size_t index = 0; index != plan_.shared; ++index) {
                // Between two barriers, so that all threads see the same answer, and none is on its way.
                team_.barrier();
                if (stopped_) break;
                if (slot == 0) steps_t::reset(shared(plan_.groups[index]).steps, step_count());
                team_.barrier();
                share(plan_.groups[index], slot);
            }
            for (size_t index; !stopped_ && (index = next_++) < plan_.count;) solve(plan_.groups[index], slot);
        });
        if (failure_.status) return fail(failure_.status, failure_.item, "%s", failure_.message);
        return stopped_ ? uform_cancelled_k : uform_success_k;
    }

  private:
    bool quantized() const noexcept { return model_.quantization == uform_e4m3_k; }

    workspace_t workspace(carver_t &carver, group_t const &group, bool shared) const noexcept {
        size_t const gated = shared ? group.tokens : std::min(group.tokens, kernels_.group_tokens);
        workspace_t made(carver, model_.config, kernels_, wanted_, group.tokens, group.count, gated, shared);
        made.segments = batch_.segments + group.first;
        return made;
    }

    size_t longest() const noexcept {
        size_t longest = 0;
        for (size_t index = 0; index != plan_.count; ++index) longest = std::max(longest, plan_.groups[index].longest);
        return longest;
    }

    /** Of the largest item, decoded. */
    size_t item_bytes() const noexcept {
        size_t most = 0;
        if (batch_.patches)
            for (size_t index = 0; index != batch_.count; ++index)
                most = std::max(most, batch_.patches->scratch_bytes(batch_.segments[index]));
        return most;
    }

    local_t local(carver_t &carver) const noexcept {
        return local_t(carver, model_.config, kernels_, wanted_, quantized(), longest(), item_bytes_);
    }

    /** A thread's own memory, then that of a group: of the shared ones in slot 0, of those it takes alone in any. */
    size_t scratch_bytes(size_t slot) const noexcept {
        size_t most = 0;
        for (size_t index = slot ? plan_.shared : 0; index != plan_.count; ++index) {
            carver_t carver(nullptr);
            workspace(carver, plan_.groups[index], index < plan_.shared);
            most = std::max(most, carver.used());
        }
        carver_t carver(nullptr);
        local(carver);
        return carver.used() + most;
    }

    /** A group on one thread. */
    void solve(group_t const &group, size_t slot) noexcept {
        config_t const &config = model_.config;
        carver_t carver(team_.scratch(slot, 0));
        local_t const own = local(carver);
        workspace_t const space = workspace(carver, group, false);
        layers_t const layers {model_, kernels_, space, own, batch_.patches};
        size_t const step = kernels_.group_tokens;

        start(space);
        if (!embed(layers, {0, group.count})) return;
        settle(space);
        range_t const all {0, space.tokens()};
        for (size_t index = 0; index != config.depth; ++index) {
            block_t const &block = model_.blocks[index];
            for (range_t some; some.begin != all.end; some.begin = some.end) {
                some.end = std::min(some.begin + step, all.end);
                layers.normalize(block.attention_norm, some);
                layers.project(block, some, {0, 3 * config.heads()});
            }
            layers.attend(block, all, {0, config.heads()}, config.window(index));
            layers.finish_block(block, space.gated, all, step);
        }
        landing_t const landing {layers, batch_};
        landing.states(all);
        landing.pool({0, group.count}, {0, config.hidden});
        landing.heads();
        finish(group);
    }

    size_t step_count() const noexcept { return workspace_t::step_count(model_.config); }

    /** The memory of a group that threads share: slot 0's, behind its own. */
    workspace_t shared(group_t const &group) noexcept {
        carver_t carver(team_.scratch(0, 0));
        local(carver);
        return workspace(carver, group, true);
    }

    /** A group on all threads, by tokens where there are enough of them, else by outputs. */
    void share(group_t const &group, size_t slot) noexcept {
        config_t const &config = model_.config;
        size_t const threads = team_.threads();
        carver_t carver(team_.scratch(slot, 0));
        local_t const own = local(carver);
        workspace_t const space = shared(group);
        layers_t const layers {model_, kernels_, space, own, batch_.patches};
        landing_t const landing {layers, batch_};
        range_t const segments {0, group.count};
        steps_t steps(space.steps);

        steps.run(1, [&](size_t) { start(space); });
        size_t const units = batch_.patches ? group.count : threads;
        steps.run(units, [&](size_t unit) { embed(layers, segments.part(unit, units)); });
        steps.run(1, [&](size_t) { settle(space); });
        // A failure to decode: the other threads see it too, since nothing else can stop the call meanwhile.
        if (stopped_) return;
        range_t const all {0, space.tokens()};
        bool const by_tokens = all.end >= threads * tokens_worth_a_thread_k;
        for (size_t index = 0; index != config.depth; ++index)
            if (by_tokens) share_tokens(layers, index, steps);
            else share_outputs(layers, index, steps);
        steps.run(threads, [&](size_t unit) { landing.states(all.part(unit, threads)); });
        steps.run(config.hidden / 32, [&](size_t unit) { landing.pool(segments, {32 * unit, 32 * unit + 32}); });
        steps.run(1, [&](size_t) {
            landing.heads();
            finish(group);
        });
    }

    void share_tokens(layers_t const &layers, size_t index, steps_t &steps) noexcept {
        config_t const &config = model_.config;
        block_t const &block = model_.blocks[index];
        range_t const all {0, layers.group.tokens()};
        size_t const step = kernels_.group_tokens, threads = team_.threads();
        // Several units a thread, all of a size, so that a thread that is slower takes fewer.
        size_t const parts = all.end / tokens_worth_a_thread_k / threads;
        size_t const units = threads * std::clamp<size_t>(parts, 1, 2 * groups_per_thread_k);
        steps.run(units, [&](size_t unit) {
            range_t const mine = all.part(unit, units);
            for (range_t some {mine.begin, mine.begin}; some.begin != mine.end; some.begin = some.end) {
                some.end = std::min(some.begin + step, mine.end);
                layers.normalize(block.attention_norm, some);
                layers.project(block, some, {0, 3 * config.heads()});
            }
        });
        share_attention(layers, index, units, steps);
        steps.run(units, [&](size_t unit) {
            range_t const mine = all.part(unit, units);
            layers.finish_block(block, layers.row(layers.group.gated, mine.begin, config.width), mine, step);
        });
    }

    /** In so many units or more: by heads first, since whoever takes a part of a segment packs all its keys. */
    void share_attention(layers_t const &layers, size_t index, size_t units, steps_t &steps) noexcept {
        size_t const heads = model_.config.heads(), parts = (units + heads - 1) / heads;
        range_t const all {0, layers.group.tokens()};
        steps.run(heads * parts, [&](size_t unit) {
            size_t const head = unit / parts;
            layers.attend(model_.blocks[index], all.part(unit % parts, parts), {head, head + 1},
                          model_.config.window(index));
        });
    }

    void share_outputs(layers_t const &layers, size_t index, steps_t &steps) noexcept {
        config_t const &config = model_.config;
        block_t const &block = model_.blocks[index];
        workspace_t const &space = layers.group;
        size_t const threads = team_.threads(), heads = config.heads();
        range_t const all {0, space.tokens()};
        auto const by_tiles = [&](packed_t const &weights, auto &&product) {
            range_t const tiles {0, weights.tiles()};
            size_t const units = std::min(tiles.end, groups_per_thread_k * threads);
            steps.run(units, [&](size_t unit) { product(tiles.part(unit, units)); });
        };
        auto const normalize = [&](float const *gain) {
            steps.run(threads, [&](size_t unit) { layers.normalize(gain, all.part(unit, threads)); });
        };

        normalize(block.attention_norm);
        steps.run(3 * heads, [&](size_t head) { layers.project(block, all, {head, head + 1}); });
        share_attention(layers, index, threads, steps);
        by_tiles(block.output, [&](range_t tiles) { layers.add(block.output, space.normed, all, tiles); });
        normalize(block.mlp_norm);
        by_tiles(block.gate_up, [&](range_t tiles) { layers.gate(block, space.gated, all, tiles); });
        by_tiles(block.down, [&](range_t tiles) { layers.add(block.down, space.gated, all, tiles); });
    }

    /** Room for all tokens that the segments may have. */
    static void start(workspace_t const &space) noexcept {
        space.starts[0] = 0;
        for (size_t index = 0; index != space.segment_count; ++index)
            space.starts[index + 1] = space.starts[index] + space.segments[index].tokens();
    }

    /** False, and the call is stopped, where an item cannot be decoded. */
    bool embed(layers_t const &layers, range_t segments) noexcept {
        if (!batch_.patches) layers.embed(segments);
        else if (layers.embed_media(segments) != uform_success_k) {
            std::lock_guard<std::mutex> lock(mutex_);
            // Of several, the first item's: what is reported then hardly depends on the threads.
            if (!failure_.status || last_failure().item < failure_.item) failure_ = last_failure();
            stopped_ = true;
            return false;
        }
        return true;
    }

    /** Closes the gaps behind segments of media that turned out to be shorter. */
    void settle(workspace_t const &space) const noexcept {
        if (!batch_.patches) return;
        size_t const hidden = model_.config.hidden, dimension = model_.config.head_dimension;
        auto const move = [](float *rows, size_t columns, size_t from, size_t to, size_t count) {
            std::memmove(rows + to * columns, rows + from * columns, count * columns * sizeof(float));
        };
        size_t end = 0;
        for (size_t index = 0; index != space.segment_count; ++index) {
            segment_t const &segment = space.segments[index];
            size_t const start = space.starts[index], count = space.times[index] * segment.rows * segment.columns;
            if (start != end && count) {
                move(space.residual, hidden, start, end, count);
                move(space.rotary, dimension, start, end, count);
            }
            batch_.tokens[segment.item] = count;
            space.starts[index] = end;
            end += count;
        }
        space.starts[space.segment_count] = end;
        for (size_t token = 0; token != end; ++token) space.positions[token] = static_cast<uint32_t>(token);
    }

    void finish(group_t const &group) noexcept {
        if (!batch_.progress) return;
        std::lock_guard<std::mutex> lock(mutex_);
        if (stopped_) return;
        completed_ += group.count;
        if (!batch_.progress(batch_.progress_context, completed_, batch_.total)) stopped_ = true;
    }

    uform_model_t const &model_;
    kernels_t const &kernels_;
    batch_t const &batch_;
    team_t &team_;
    wanted_t const wanted_;
    std::mutex mutex_;
    size_t completed_ = 0;
    size_t const item_bytes_ = item_bytes();
    uform_failure_t failure_ {uform_success_k, UFORM_NO_ITEM, {}};
    std::atomic<bool> stopped_ {false};
    std::atomic<size_t> next_ {0};
    plan_t const plan_;
};

} // namespace

uform_status_t forward(uform_model_t const &model, uform_cpu_class_t cpu_class, batch_t const &batch,
                       team_t &team) noexcept {
    if (batch.count == 0) return uform_success_k;
    return pass_t(model, kernels_of(cpu_class), batch, team).run();
}

} // namespace uform
