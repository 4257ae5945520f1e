#include "forward.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <new>

#include "landing.h"
#include "layers.h"
#include "plan.h"

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
                // Between two barriers, so that all threads see the same answer.
                team_.barrier();
                if (stopped_) break;
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
        workspace_t made(carver, model_.config, kernels_, wanted_, group.tokens, group.count, gated);
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

    /** A group on all threads, by tokens where there are enough of them, else by outputs. */
    void share(group_t const &group, size_t slot) noexcept {
        config_t const &config = model_.config;
        size_t const threads = team_.threads();
        carver_t own(team_.scratch(slot, 0)), shared(team_.scratch(0, 0));
        local_t const local(own, config, kernels_, quantized(), longest());
        local_t(shared, config, kernels_, quantized(), longest());
        workspace_t const space = workspace(shared, group, true);
        layers_t const layers {model_, kernels_, space, local};
        range_t const all {0, group.tokens}, mine = all.part(slot, threads);

        if (slot == 0) start(space);
        team_.barrier();
        layers.embed(range_t {0, group.count}.part(slot, threads));
        team_.barrier();
        bool const by_tokens = group.tokens >= threads * tokens_worth_a_thread_k;
        for (size_t index = 0; index != config.depth; ++index)
            if (by_tokens) share_tokens(layers, index, mine);
            else share_outputs(layers, index, mine, slot);
        landing_t const landing {layers, batch_};
        landing.states(mine);
        team_.barrier();
        range_t const columns = range_t {0, config.hidden / 32}.part(slot, threads);
        landing.pool({0, group.count}, {columns.begin * 32, columns.end * 32});
        team_.barrier();
        if (slot != 0) return;
        landing.heads();
        finish(group);
    }

    void share_tokens(layers_t const &layers, size_t index, range_t mine) noexcept {
        config_t const &config = model_.config;
        block_t const &block = model_.blocks[index];
        size_t const step = kernels_.group_tokens;
        for (range_t some {mine.begin, mine.begin}; some.begin != mine.end; some.begin = some.end) {
            some.end = std::min(some.begin + step, mine.end);
            layers.normalize(block.attention_norm, some);
            layers.project(block, some, {0, 3 * config.heads()});
        }
        team_.barrier();
        layers.attend(mine, {0, config.heads()}, config.window(index));
        std::byte *gated = layers.row(layers.group.gated, mine.begin, config.width);
        layers.finish_block(block, gated, mine, step);
        team_.barrier(); // Attention of the others has read the heads that the next block overwrites.
    }

    void share_outputs(layers_t const &layers, size_t index, range_t mine, size_t slot) noexcept {
        config_t const &config = model_.config;
        block_t const &block = model_.blocks[index];
        workspace_t const &space = layers.group;
        size_t const threads = team_.threads(), heads = config.heads();
        range_t const all {0, space.tokens};
        auto const tiles_of = [&](packed_t const &weights) { return range_t {0, weights.tiles()}.part(slot, threads); };

        layers.normalize(block.attention_norm, mine);
        team_.barrier();
        layers.project(block, all, range_t {0, 3 * heads}.part(slot, threads));
        team_.barrier();
        // With fewer heads than threads, some threads share a head.
        size_t const parts = (threads + heads - 1) / heads;
        range_t const work = range_t {0, heads * parts}.part(slot, threads);
        for (size_t unit = work.begin; unit != work.end; ++unit)
            layers.attend(all.part(unit % parts, parts), {unit / parts, unit / parts + 1}, config.window(index));
        team_.barrier();
        layers.add(block.output, space.normed, all, tiles_of(block.output));
        team_.barrier();
        layers.normalize(block.mlp_norm, mine);
        team_.barrier();
        layers.gate(block, space.gated, all, tiles_of(block.gate_up));
        team_.barrier();
        layers.add(block.down, space.gated, all, tiles_of(block.down));
        team_.barrier();
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
