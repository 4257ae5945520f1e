#include "fake_model.h"

#include <cstring>
#include <thread>

#include "model/forward.h"

fake_forward_t fake_forward;

void uform_model_t::memory_deleter_t::operator()(std::byte *) const noexcept {}

void fake_model(uform_model_t &model) {
    model.config.depth = 1;
    model.config.hidden = 8;
    model.config.head_dimension = 8;
    model.config.dimensions = 4;
    model.config.context = 16;
    model.config.token_width = 2;
    model.config.choice_temperature_groups = 2;
    model.token_head.rows = 2;
    model.byte_head.rows = 256;
    model.cpu_class = uform_cpu_class_serial_k;
    model.cpu_class_pinned = false;
}

namespace uform {
namespace {

/** Writes `value` as any scalar; tests use numbers that all of them can tell. */
void put(void *surface, size_t index, uform_scalar_t scalar, float value) noexcept {
    uint32_t bits;
    std::memcpy(&bits, &value, 4);
    if (scalar == uform_f32_k) static_cast<float *>(surface)[index] = value;
    else if (scalar == uform_bf16_k) static_cast<uint16_t *>(surface)[index] = uint16_t(bits >> 16);
    else static_cast<uint8_t *>(surface)[index] = uint8_t(bits >> 24);
}

/** An embedding is [bytes, tokens, 1, 1], a state and a token vector repeat the byte (256: the query token). */
void fill(uform_model_t const &model, batch_t const &batch, segment_t const &segment) noexcept {
    config_t const &config = model.config;
    if (batch.embeddings)
        for (size_t column = 0; column != config.dimensions; ++column)
            put(batch.embeddings, segment.item * config.dimensions + column, batch.scalar,
                column == 0   ? float(segment.byte_count)
                : column == 1 ? float(segment.tokens())
                              : 1.0f);
    for (size_t token = 0; token != segment.tokens(); ++token) {
        float const value = token < segment.byte_count ? float(segment.bytes[token]) : 256.0f;
        for (size_t column = 0; batch.states && column != config.hidden; ++column)
            put(batch.states, (segment.row + token) * config.hidden + column, batch.scalar, value);
        for (size_t column = 0; batch.token_vectors && column != config.token_width; ++column)
            put(batch.token_vectors, (segment.row + token) * config.token_width + column, batch.scalar, value);
    }
    if (batch.probabilities) {
        size_t const begin = batch.choice_offsets[segment.item], end = batch.choice_offsets[segment.item + 1];
        uint32_t const group = batch.temperature_groups ? batch.temperature_groups[segment.item] : 0;
        for (size_t choice = begin; choice != end; ++choice)
            batch.probabilities[choice] = float(batch.choices[choice]) + 1000.0f * float(group);
    }
}

} // namespace

uform_status_t forward(uform_model_t const &model, uform_cpu_class_t cpu_class, batch_t const &batch,
                       team_t &team) noexcept {
    fake_forward.cpu_class = cpu_class;
    fake_forward.threads = team.threads();
    ++fake_forward.calls;
    ++fake_forward.inside;
    while (!fake_forward.open) std::this_thread::yield();
    --fake_forward.inside;

    std::atomic<size_t> next {0};
    std::atomic<bool> starved {false};
    team.run_each([&](size_t slot) noexcept {
        if (!team.scratch(slot, 4096)) starved = true;
        for (size_t index; (index = next++) < batch.count;) fill(model, batch, batch.segments[index]);
        team.barrier();
    });
    if (starved) return uform_out_of_memory_k;
    for (size_t index = 0; batch.progress && index != batch.count; ++index)
        if (!batch.progress(batch.progress_context, batch.completed + index + 1, batch.total)) return uform_cancelled_k;
    return uform_status_t(fake_forward.status.load());
}

} // namespace uform
