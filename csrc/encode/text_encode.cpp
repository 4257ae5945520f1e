#include "uform/encode.h"

#include "../core/failure.h"
#include "../core/tape.h"
#include "dispatch.h"
#include "text_call.h"

uform_status_t uform_text_encode(uform_model_t const *model, uform_text_encode_t const *arguments) {
    using namespace uform;
    if (!model) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "model: must not be NULL");
    if (!arguments) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "arguments: must not be NULL");
    uform_executor_t *const executor = arguments->executor;
    if (uform_status_t const status = check_receiver(executor, arguments->completion, arguments->arena)) return status;

    text_call_t call;
    call.model = model;
    call.texts = arguments->texts;
    call.progress = arguments->progress;
    call.progress_context = arguments->progress_context;
    call.stats = arguments->stats;
    call.embeddings = arguments->embeddings;
    call.states = arguments->states;
    call.token_vectors = arguments->token_vectors;
    if (uform_status_t const status = resolve_scalar(arguments->outputs_scalar, call.scalar)) return status;
    if (call.token_vectors && !model->token_head)
        return fail(uform_unsupported_k, UFORM_NO_ITEM, "token_vectors: the model has no token head");
    if (uform_status_t const status = resolve_cpu_class(*model, executor, call.cpu_class)) return status;
    if (uform_status_t const status = check_tape(call.texts, "texts")) return status;
    return dispatch(call, executor, arguments->completion, *arguments->arena);
}
