#include "uform/encode.h"

#include "../core/failure.h"
#include "../core/tape.h"
#include "dispatch.h"
#include "text_call.h"

namespace {

using namespace uform;

/** Each text has at least one choice, and no byte twice. */
uform_status_t check_choices(uform_tape_t const &choices) noexcept {
    auto const *bytes = static_cast<uint8_t const *>(choices.data);
    for (size_t item = 0; item != choices.count; ++item) {
        size_t const begin = choices.offsets[item], end = choices.offsets[item + 1];
        if (begin == end) return fail(uform_invalid_argument_k, item, "choices: item %zu has none", item);
        bool seen[256] = {};
        for (size_t index = begin; index != end; ++index) {
            uint8_t const byte = bytes[index];
            if (seen[byte])
                return fail(uform_invalid_argument_k, item, "choices: item %zu has byte %u twice", item, byte);
            seen[byte] = true;
        }
    }
    return uform_success_k;
}

uform_status_t check_temperature_groups(uint32_t const *groups, size_t count, size_t limit) noexcept {
    for (size_t item = 0; item != count; ++item)
        if (groups[item] >= limit)
            return fail(uform_invalid_argument_k, item,
                        "temperature_groups: item %zu is in group %u, but the model has %zu", item, groups[item],
                        limit);
    return uform_success_k;
}

} // namespace

uform_status_t uform_text_choose(uform_model_t const *model, uform_text_choose_t const *arguments) {
    if (!model) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "model: must not be NULL");
    if (!arguments) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arguments: must not be NULL");
    uform_executor_t *const executor = arguments->executor;
    if (uform_status_t const status = check_receiver(executor, arguments->completion, arguments->arena)) return status;
    if (!arguments->probabilities)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "probabilities: must not be NULL");
    size_t const groups_limit = model->config.choice_temperature_groups;
    if (!groups_limit) return fail(uform_unsupported_k, UFORM_NO_ITEM, "model: it has no byte decoder");

    text_call_t call;
    call.model = model;
    call.texts = arguments->texts;
    call.progress = arguments->progress;
    call.progress_context = arguments->progress_context;
    call.stats = arguments->stats;
    call.probabilities = arguments->probabilities;
    call.choices = arguments->choices;
    call.temperature_groups = arguments->temperature_groups;
    size_t const count = call.texts.count;
    if (uform_status_t const status = resolve_cpu_class(*model, executor, call.cpu_class)) return status;
    if (uform_status_t const status = check_tape(call.texts, "texts")) return status;
    if (uform_status_t const status = check_tape(call.choices, "choices")) return status;
    if (call.choices.count != count)
        return fail(uform_shape_mismatch_k, UFORM_NO_ITEM, "choices: %zu items for %zu texts", call.choices.count,
                    count);
    if (call.temperature_groups && arguments->temperature_groups_count != count)
        return fail(uform_shape_mismatch_k, UFORM_NO_ITEM, "temperature_groups: %zu items for %zu texts",
                    arguments->temperature_groups_count, count);
    if (uform_status_t const status = check_choices(call.choices)) return status;
    if (call.temperature_groups)
        if (uform_status_t const status = check_temperature_groups(call.temperature_groups, count, groups_limit))
            return status;
    return dispatch(call, executor, arguments->completion, *arguments->arena);
}
