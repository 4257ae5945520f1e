/**
 *  The quick start in plain C, blocking and deferred, against the installed headers and library alone.
 *  Usage: quick_start CHECKPOINT
 */
#include <math.h>
#include <string.h>

#include <uform/encode.h>

#include "check.h"

static char const data[] = "a cat on a mata dog in the fog";
static size_t const offsets[] = {0, 14, 30, 30};

static char const *checkpoint;
static uform_executor_t *executor;
static uform_model_t *model;
static uform_model_description_t description;

static uform_tape_t texts(void) {
    uform_tape_t tape;
    tape.data = data;
    tape.length = sizeof(data) - 1;
    tape.offsets = offsets;
    tape.count = 3;
    return tape;
}

static bool count_calls(void *context, size_t completed, size_t total) {
    ++*(size_t *)context;
    return completed <= total;
}

static void load(void) {
    uform_model_load_ram_t options = {0};
    uform_executor_ram_t executor_options = {0};
    size_t calls = 0;
    executor_options.threads = 2;
    CHECK_STATUS(uform_executor_init_ram(&executor_options, &executor), uform_success_k);
    CHECK_STATUS(uform_model_load_ram("/nowhere/at/all.safetensors", NULL, &model), uform_io_k);
    options.executor = executor;
    options.progress = count_calls;
    options.progress_context = &calls;
    CHECK_STATUS(uform_model_load_ram(checkpoint, &options, &model), uform_success_k);
    if (!model) return;
    uform_model_describe(model, &description);
    CHECK(calls > 0 && description.dimensions > 0 && description.hidden > 0 && description.context > 16);
    CHECK(description.quantization == uform_bf16_k && !description.cpu_class_pinned);
    CHECK(description.cpu_class == uform_cpu_class_derive());
}

static void check_embeddings(uform_rows_t const *embeddings) {
    CHECK(embeddings->rows == 3 && embeddings->columns == description.dimensions);
    CHECK(embeddings->scalar == uform_f32_k && embeddings->row_bytes == 4 * description.dimensions);
    for (size_t row = 0; row != embeddings->rows; ++row) {
        float const *embedding = (float const *)((char const *)embeddings->data + row * embeddings->row_bytes);
        double squares = 0;
        for (size_t column = 0; column != embeddings->columns; ++column)
            squares += embedding[column] * embedding[column];
        CHECK(fabs(squares - (row == 2 ? 0 : 1)) < 1e-5);
    }
}

static void encode(void) {
    uform_text_encode_t arguments = {0};
    uform_text_encode_stats_t stats = {0, 0};
    uform_rows_t embeddings = {0}, deferred = {0};
    uform_rows_tape_t states = {0};
    uform_arena_t *arena = NULL, *second = NULL;
    uform_outcome_t *outcome = NULL;
    uform_failure_t failure;
    CHECK_STATUS(uform_arena_init(executor, &arena), uform_success_k);
    CHECK_STATUS(uform_arena_init(executor, &second), uform_success_k);
    arguments.arena = arena;
    arguments.texts = texts();
    arguments.embeddings = &embeddings;
    arguments.stats = &stats;
    CHECK_STATUS(uform_text_encode(model, &arguments), uform_success_k);
    check_embeddings(&embeddings);
    CHECK(stats.encoded_tokens == 30 && stats.truncated_items == 0);

    arguments.executor = executor;
    arguments.completion = &outcome;
    arguments.arena = second;
    arguments.embeddings = &deferred;
    arguments.states = &states;
    CHECK_STATUS(uform_text_encode(model, &arguments), uform_deferred_k);
    CHECK_STATUS(uform_outcome_wait(outcome), uform_success_k);
    uform_outcome_failure(outcome, &failure);
    CHECK(failure.status == uform_success_k && failure.item == UFORM_NO_ITEM);
    uform_outcome_free(outcome);
    check_embeddings(&deferred);
    CHECK(!memcmp(embeddings.data, deferred.data, embeddings.rows * embeddings.row_bytes));
    CHECK(states.count == 3 && states.rows.rows == 30 && states.rows.columns == description.hidden);
    CHECK(!memcmp(states.offsets, offsets, sizeof(offsets)));

    CHECK_STATUS(uform_arena_pin(second, uform_arena_generation(second)), uform_success_k);
    arguments.completion = NULL;
    CHECK_STATUS(uform_text_encode(model, &arguments), uform_contended_k);
    uform_arena_unpin(second);
    CHECK_STATUS(uform_text_encode(model, &arguments), uform_success_k);
    uform_arena_free(arena);
    uform_arena_free(second);
}

static void score_tokens(void) {
    uform_text_encode_t arguments = {0};
    uform_rows_tape_t vectors = {0};
    uform_arena_t *arena = NULL;
    CHECK_STATUS(uform_arena_init(executor, &arena), uform_success_k);
    arguments.executor = executor;
    arguments.arena = arena;
    arguments.texts = texts();
    arguments.token_vectors = &vectors;
    if (description.token_width) {
        CHECK_STATUS(uform_text_encode(model, &arguments), uform_success_k);
        CHECK(vectors.rows.rows == 30 && vectors.rows.columns == description.token_width);
    }
    else {
        CHECK_STATUS(uform_text_encode(model, &arguments), uform_unsupported_k);
    }
    uform_arena_free(arena);
}

static void choose(void) {
    size_t const choice_offsets[] = {0, 2, 6, 9};
    uform_text_choose_t arguments = {0};
    uform_rows_tape_t probabilities = {0};
    uform_arena_t *arena = NULL;
    uform_outcome_t *outcome = NULL;
    CHECK_STATUS(uform_arena_init(executor, &arena), uform_success_k);
    arguments.executor = executor;
    arguments.arena = arena;
    arguments.texts = texts();
    arguments.choices.data = "ynABCD123";
    arguments.choices.length = 9;
    arguments.choices.offsets = choice_offsets;
    arguments.choices.count = 3;
    arguments.probabilities = &probabilities;
    if (description.choice_temperature_groups) {
        for (int deferred = 0; deferred != 2; ++deferred) {
            arguments.completion = deferred ? &outcome : NULL;
            CHECK_STATUS(uform_text_choose(model, &arguments), deferred ? uform_deferred_k : uform_success_k);
            if (deferred) CHECK_STATUS(uform_outcome_wait(outcome), uform_success_k);
            CHECK(probabilities.count == 3 && probabilities.rows.rows == 9 && probabilities.rows.columns == 1);
            for (size_t item = 0; item != probabilities.count; ++item) {
                double sum = 0;
                for (size_t row = probabilities.offsets[item]; row != probabilities.offsets[item + 1]; ++row)
                    sum += ((float const *)probabilities.rows.data)[row];
                CHECK(fabs(sum - 1) < 1e-5);
            }
        }
        uform_outcome_free(outcome);
    }
    else {
        CHECK_STATUS(uform_text_choose(model, &arguments), uform_unsupported_k);
    }
    uform_arena_free(arena);
}

static void release(void) {
    CHECK_STATUS(uform_executor_drain(executor, uform_mood_parked_k), uform_success_k);
    uform_model_free(model);
    uform_executor_free(executor);
    uform_model_free(NULL);
    uform_executor_free(NULL);
    uform_arena_free(NULL);
    uform_outcome_free(NULL);
}

int main(int argument_count, char **arguments) {
    if (argument_count != 2) {
        fprintf(stderr, "usage: %s CHECKPOINT\n", arguments[0]);
        return 2;
    }
    checkpoint = arguments[1];
    RUN(load);
    if (!model) return 1;
    RUN(encode);
    RUN(score_tokens);
    RUN(choose);
    RUN(release);
    return check_report();
}
