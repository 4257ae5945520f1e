#include "forward.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>

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
        : model_(model), kernels_(kernels), batch_(batch), team_(team), wanted_(batch), completed_(batch.completed),
          plan_(plan(model.config, batch, team.threads(), kernels.group_tokens)) {}

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
        return stopped_ ? uform_cancelled_k : uform_success_k;
    }

  private:
    bool quantized() const noexcept { return model_.quantization == uform_e4m3_k; }

    workspace_t workspace(carver_t &carver, group_t const &group, bool shared) const noexcept {
        size_t const gated = shared ? group.tokens : std::min(group.tokens, kernels_.group_tokens);
        workspace_t made(carver, model_.config, kernels_, wanted_, group.tokens, group.count, gated, shared);
        made.segments = batch_.segments + group.first;
        made.tokens = group.tokens;
        made.segment_count = group.count;
        return made;
    }

    size_t longest() const noexcept {
        size_t longest = 0;
        for (size_t index = 0; index != plan_.count; ++index) longest = std::max(longest, plan_.groups[index].longest);
        return longest;
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
        local_t(carver, model_.config, kernels_, quantized(), longest());
        return carver.used() + most;
    }

    /** A group on one thread. */
    void solve(group_t const &group, size_t slot) noexcept {
        config_t const &config = model_.config;
        carver_t carver(team_.scratch(slot, 0));
        local_t const local(carver, config, kernels_, quantized(), longest());
        workspace_t const space = workspace(carver, group, false);
        layers_t const layers {model_, kernels_, space, local};
        size_t const step = kernels_.group_tokens;
        range_t const all {0, group.tokens};

        start(space);
        layers.embed({0, group.count});
        for (size_t index = 0; index != config.depth; ++index) {
            block_t const &block = model_.blocks[index];
            for (range_t some; some.begin != all.end; some.begin = some.end) {
                some.end = std::min(some.begin + step, all.end);
                layers.normalize(block.attention_norm, some);
                layers.project(block, some, {0, 3 * config.heads()});
            }
            layers.attend(all, {0, config.heads()}, config.window(index));
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
        local_t(carver, model_.config, kernels_, quantized(), longest());
        return workspace(carver, group, true);
    }

    /** A group on all threads, by tokens where there are enough of them, else by outputs. */
    void share(group_t const &group, size_t slot) noexcept {
        config_t const &config = model_.config;
        size_t const threads = team_.threads();
        carver_t carver(team_.scratch(slot, 0));
        local_t const local(carver, config, kernels_, quantized(), longest());
        workspace_t const space = shared(group);
        layers_t const layers {model_, kernels_, space, local};
        landing_t const landing {layers, batch_};
        range_t const all {0, group.tokens}, segments {0, group.count};
        steps_t steps(space.steps);

        steps.run(1, [&](size_t) { start(space); });
        steps.run(threads, [&](size_t unit) { layers.embed(segments.part(unit, threads)); });
        bool const by_tokens = group.tokens >= threads * tokens_worth_a_thread_k;
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
        range_t const all {0, layers.group.tokens};
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
        steps.run(units, [&](size_t unit) {
            range_t const mine = all.part(unit, units);
            layers.attend(mine, {0, config.heads()}, config.window(index));
            layers.finish_block(block, layers.row(layers.group.gated, mine.begin, config.width), mine, step);
        });
    }

    void share_outputs(layers_t const &layers, size_t index, steps_t &steps) noexcept {
        config_t const &config = model_.config;
        block_t const &block = model_.blocks[index];
        workspace_t const &space = layers.group;
        size_t const threads = team_.threads(), heads = config.heads();
        range_t const all {0, space.tokens};
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
        // With fewer heads than threads, some threads share a head.
        size_t const parts = (threads + heads - 1) / heads;
        steps.run(heads * parts, [&](size_t unit) {
            layers.attend(all.part(unit % parts, parts), {unit / parts, unit / parts + 1}, config.window(index));
        });
        by_tiles(block.output, [&](range_t tiles) { layers.add(block.output, space.normed, all, tiles); });
        normalize(block.mlp_norm);
        by_tiles(block.gate_up, [&](range_t tiles) { layers.gate(block, space.gated, all, tiles); });
        by_tiles(block.down, [&](range_t tiles) { layers.add(block.down, space.gated, all, tiles); });
    }

    static void start(workspace_t const &space) noexcept {
        size_t token = 0;
        for (size_t index = 0; index != space.segment_count; ++index) {
            space.starts[index] = token;
            token += space.segments[index].tokens();
        }
        space.starts[space.segment_count] = token;
    }

    void finish(group_t const &group) noexcept {
        if (!batch_.progress) return;
        std::lock_guard<std::mutex> lock(progress_mutex_);
        if (stopped_) return;
        completed_ += group.count;
        if (!batch_.progress(batch_.progress_context, completed_, batch_.total)) stopped_ = true;
    }

    uform_model_t const &model_;
    kernels_t const &kernels_;
    batch_t const &batch_;
    team_t &team_;
    wanted_t const wanted_;
    std::mutex progress_mutex_;
    size_t completed_ = 0;
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
