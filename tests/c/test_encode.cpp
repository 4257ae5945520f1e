/** The text verbs over a stand-in for the forward pass: checks, segments, landing, contention, deferral, forks. */
#include <cstdlib>
#include <cstring>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "check.h"
#include "fake_model.h"
#include "uform/encode.h"

struct tape_t {
    std::string data;
    std::vector<size_t> offsets {0};

    tape_t(std::initializer_list<std::string> items) {
        for (std::string const &item : items) data += item, offsets.push_back(data.size());
    }
    operator uform_tape_t() const { return {data.data(), data.size(), offsets.data(), offsets.size() - 1}; }
};

/** A model, an executor of two threads, an arena, and arguments of both verbs that name all outputs. */
struct fixture_t {
    uform_model_t model;
    uform_executor_t *executor = nullptr;
    uform_arena_t *arena = nullptr;
    uform_outcome_t *outcome = nullptr;
    uform_rows_t embeddings {};
    uform_rows_tape_t states {}, token_vectors {}, probabilities {};
    uform_text_encode_stats_t stats {99, 99};
    tape_t texts {"hello", "", "0123456789abcdefXYZ", "a"};
    tape_t choices {"yn", "ABCD", "q", "01"};
    uint32_t groups[4] = {0, 1, 0, 1};
    uform_text_encode_t encode {};
    uform_text_choose_t choose {};

    fixture_t() {
        fake_model(model);
        fake_forward.open = true;
        fake_forward.status = uform_success_k;
        uform_executor_ram_t options {};
        options.threads = 2;
        CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
        CHECK_STATUS(uform_arena_init(executor, &arena), uform_success_k);
        encode.arena = choose.arena = arena;
        encode.texts = choose.texts = texts;
        encode.embeddings = &embeddings;
        encode.states = &states;
        encode.token_vectors = &token_vectors;
        encode.stats = choose.stats = &stats;
        choose.choices = choices;
        choose.probabilities = &probabilities;
    }
    ~fixture_t() {
        uform_arena_free(arena);
        uform_executor_free(executor);
    }

    uform_status_t run_encode() const { return uform_text_encode(&model, &encode); }
    uform_status_t run_choose() const { return uform_text_choose(&model, &choose); }
};

static bool says(size_t item, char const *part) {
    uform_failure_t failure;
    uform_last_failure(&failure);
    if (failure.item == item && std::strstr(failure.message, part)) return true;
    std::fprintf(stderr, "  item %zu: %s\n", failure.item, failure.message);
    return false;
}

static void check_encoded(fixture_t const &f) {
    CHECK(f.embeddings.rows == 4 && f.embeddings.columns == 4 && f.embeddings.row_bytes == 16);
    CHECK(f.embeddings.scalar == uform_f32_k && reinterpret_cast<uintptr_t>(f.embeddings.data) % 64 == 0);
    float const expected[] = {5, 5, 1, 1, 0, 0, 0, 0, 16, 16, 1, 1, 1, 1, 1, 1};
    CHECK(!std::memcmp(f.embeddings.data, expected, sizeof(expected)));
    size_t const offsets[] = {0, 5, 5, 21, 22};
    CHECK(f.states.count == 4 && !std::memcmp(f.states.offsets, offsets, sizeof(offsets)));
    CHECK(f.states.rows.rows == 22 && f.states.rows.columns == 8 && f.states.rows.row_bytes == 32);
    CHECK(reinterpret_cast<uintptr_t>(f.states.rows.data) % 64 == 0);
    auto const *states = static_cast<float const *>(f.states.rows.data);
    CHECK(states[0] == 'h' && states[5 * 8] == '0' && states[21 * 8 + 7] == 'a');
    CHECK(f.token_vectors.offsets == f.states.offsets && f.token_vectors.rows.columns == 2);
    CHECK(static_cast<float const *>(f.token_vectors.rows.data)[20 * 2] == 'f');
    CHECK(f.stats.truncated_items == 1 && f.stats.encoded_tokens == 22);
}

static void texts_are_encoded() {
    fixture_t f;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    check_encoded(f);
    CHECK(fake_forward.threads == 1);
    f.encode.executor = f.executor;
    f.states = {};
    CHECK_STATUS(f.run_encode(), uform_success_k);
    check_encoded(f);
    CHECK(fake_forward.threads == 2 && uform_arena_generation(f.arena) == 2);
    size_t const capacity = uform_arena_capacity(f.arena);
    void *const before = f.embeddings.data;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(before == f.embeddings.data && uform_arena_capacity(f.arena) == capacity);
}

static void scalars_are_landed() {
    fixture_t f;
    for (uform_scalar_t scalar : {uform_f32_k, uform_bf16_k, uform_e4m3_k}) {
        f.encode.outputs_scalar = scalar;
        CHECK_STATUS(f.run_encode(), uform_success_k);
        CHECK(f.embeddings.scalar == scalar && f.embeddings.row_bytes == 4 * uform_scalar_size(scalar));
        std::vector<char> const zeros(f.embeddings.row_bytes);
        CHECK(!std::memcmp(static_cast<char *>(f.embeddings.data) + zeros.size(), zeros.data(), zeros.size()));
        CHECK(f.states.rows.row_bytes == 8 * uform_scalar_size(scalar));
    }
}

static void outputs_left_out_are_not_computed() {
    fixture_t f;
    f.encode.states = nullptr;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(!f.states.offsets && f.token_vectors.offsets && f.token_vectors.rows.rows == 22);
    f.encode.token_vectors = nullptr;
    f.encode.embeddings = nullptr;
    f.encode.stats = nullptr;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    f.encode.embeddings = &f.embeddings;
    f.model.token_head.rows = 0;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    f.encode.token_vectors = &f.token_vectors;
    CHECK_STATUS(f.run_encode(), uform_unsupported_k);
}

static void empty_batches_have_shapes() {
    fixture_t f;
    int const calls = fake_forward.calls;
    f.encode.texts = f.choose.texts = f.choose.choices = {};
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(f.embeddings.rows == 0 && f.embeddings.columns == 4 && f.embeddings.data);
    CHECK(f.states.count == 0 && f.states.offsets[0] == 0 && f.states.rows.rows == 0 && f.states.rows.columns == 8);
    CHECK(f.stats.encoded_tokens == 0 && f.stats.truncated_items == 0);
    CHECK_STATUS(f.run_choose(), uform_success_k);
    CHECK(f.probabilities.count == 0 && f.probabilities.offsets[0] == 0 && f.probabilities.rows.columns == 1);
    tape_t const empties {"", "", ""};
    f.encode.texts = empties;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    float const zeros[12] = {};
    CHECK(f.embeddings.rows == 3 && !std::memcmp(f.embeddings.data, zeros, sizeof(zeros)));
    CHECK(f.states.offsets[3] == 0 && fake_forward.calls == calls);
}

static void choices_are_scored() {
    fixture_t f;
    CHECK_STATUS(f.run_choose(), uform_success_k);
    size_t const offsets[] = {0, 2, 6, 7, 9};
    CHECK(f.probabilities.count == 4 && !std::memcmp(f.probabilities.offsets, offsets, sizeof(offsets)));
    CHECK(f.probabilities.rows.rows == 9 && f.probabilities.rows.columns == 1 && f.probabilities.rows.row_bytes == 4);
    auto const *values = static_cast<float const *>(f.probabilities.rows.data);
    CHECK(values[0] == 'y' && values[2] == 'A' && values[8] == '1');
    // 6 + 1 + 16 + 2: the query token takes the place of a truncated text's last.
    CHECK(f.stats.truncated_items == 1 && f.stats.encoded_tokens == 25);
    f.choose.temperature_groups = f.groups;
    f.choose.temperature_groups_count = 4;
    CHECK_STATUS(f.run_choose(), uform_success_k);
    CHECK(static_cast<float const *>(f.probabilities.rows.data)[8] == '1' + 1000);
}

/** A refused call leaves the outputs, the stats and the arena as they are. */
static void expect_refused(fixture_t &f, bool choose, uform_status_t expected, size_t item, char const *part) {
    uint64_t const generation = uform_arena_generation(f.arena);
    f.stats = {99, 99};
    f.embeddings = {};
    CHECK_STATUS(choose ? f.run_choose() : f.run_encode(), expected);
    CHECK(says(item, part));
    CHECK(uform_arena_generation(f.arena) == generation && f.stats.encoded_tokens == 99 && !f.embeddings.data);
    CHECK(!uform_arena_busy(f.arena) && !uform_executor_busy(f.executor));
}

static void bad_arguments_are_refused() {
    fixture_t good;
    CHECK_STATUS(uform_text_encode(nullptr, &good.encode), uform_invalid_argument_k);
    CHECK_STATUS(uform_text_encode(&good.model, nullptr), uform_invalid_argument_k);
    CHECK_STATUS(uform_text_choose(nullptr, &good.choose), uform_invalid_argument_k);
    CHECK_STATUS(uform_text_choose(&good.model, nullptr), uform_invalid_argument_k);
    auto const refuse = [](bool choose, uform_status_t expected, size_t item, char const *part, auto &&spoil) {
        fixture_t f;
        spoil(f);
        expect_refused(f, choose, expected, item, part);
    };
    constexpr auto invalid = uform_invalid_argument_k, mismatch = uform_shape_mismatch_k;
    constexpr size_t none = UFORM_NO_ITEM;
    refuse(false, invalid, none, "arena", [](fixture_t &f) { f.encode.arena = nullptr; });
    refuse(true, invalid, none, "arena", [](fixture_t &f) { f.choose.arena = nullptr; });
    refuse(false, invalid, none, "completion", [](fixture_t &f) { f.encode.completion = &f.outcome; });
    refuse(true, invalid, none, "completion", [](fixture_t &f) { f.choose.completion = &f.outcome; });
    refuse(false, uform_unknown_kind_k, none, "outputs_scalar",
           [](fixture_t &f) { f.encode.outputs_scalar = uform_scalar_t(9); });
    refuse(false, invalid, 1, "texts", [](fixture_t &f) { f.texts.offsets[2] = 2; });
    refuse(false, invalid, 3, "texts", [](fixture_t &f) { f.texts.offsets[4] = 1000; });
    refuse(true, invalid, 0, "texts", [](fixture_t &f) { f.texts.offsets[0] = 1; });
    refuse(true, invalid, 2, "choices", [](fixture_t &f) { f.choices.offsets[3] = f.choices.offsets[2]; });
    refuse(true, invalid, 1, "byte 65", [](fixture_t &f) { f.choices.data[4] = 'A'; });
    refuse(true, mismatch, none, "choices", [](fixture_t &f) { f.choose.choices.count = 3; });
    refuse(true, invalid, none, "probabilities", [](fixture_t &f) { f.choose.probabilities = nullptr; });
    refuse(true, uform_unsupported_k, none, "byte decoder",
           [](fixture_t &f) { f.model.config.choice_temperature_groups = 0; });
    refuse(true, mismatch, none, "temperature_groups", [](fixture_t &f) {
        f.choose.temperature_groups = f.groups;
        f.choose.temperature_groups_count = 5;
    });
    refuse(true, invalid, 2, "temperature_groups", [](fixture_t &f) {
        f.choose.temperature_groups = f.groups;
        f.choose.temperature_groups_count = 4;
        f.groups[2] = 2;
    });
}

static void classes_are_resolved() {
    fixture_t f;
    uform_executor_ram_t options {};
    options.threads = 1;
    options.cpu_class = uform_cpu_class_serial_k;
    uform_executor_t *pinned = nullptr;
    CHECK_STATUS(uform_executor_init_ram(&options, &pinned), uform_success_k);
    f.model.cpu_class = uform_cpu_class_haswell_k;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(fake_forward.cpu_class == uform_cpu_class_haswell_k);
    f.encode.executor = f.choose.executor = pinned;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(fake_forward.cpu_class == uform_cpu_class_serial_k);
    f.model.cpu_class_pinned = true;
    expect_refused(f, false, uform_config_mismatch_k, UFORM_NO_ITEM, "SERIAL");
    expect_refused(f, true, uform_config_mismatch_k, UFORM_NO_ITEM, "HASWELL");
    f.encode.executor = f.executor;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(fake_forward.cpu_class == uform_cpu_class_haswell_k);
    uform_executor_free(pinned);
}

static void pinned_arenas_are_contended() {
    fixture_t f;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK_STATUS(uform_arena_pin(f.arena, uform_arena_generation(f.arena)), uform_success_k);
    expect_refused(f, false, uform_contended_k, UFORM_NO_ITEM, "arena");
    f.encode.executor = f.executor;
    f.encode.completion = &f.outcome;
    CHECK_STATUS(f.run_encode(), uform_deferred_k);
    CHECK(uform_outcome_status(f.outcome) == uform_contended_k);
    uform_failure_t failure;
    uform_outcome_failure(f.outcome, &failure);
    CHECK(std::strstr(failure.message, "arena: pinned by 1"));
    uform_outcome_free(f.outcome);
    CHECK(!uform_executor_busy(f.executor));
    uform_arena_unpin(f.arena);
    CHECK_STATUS(uform_arena_pin(f.arena, 1), uform_success_k);
    uform_arena_unpin(f.arena);
}

static void calls_contend() {
    fixture_t f, other;
    f.encode.executor = f.executor;
    f.encode.completion = &f.outcome;
    fake_forward.open = false;
    CHECK_STATUS(f.run_encode(), uform_deferred_k);
    while (!fake_forward.inside) std::this_thread::yield();
    CHECK(uform_outcome_status(f.outcome) == uform_deferred_k);
    CHECK(uform_executor_busy(f.executor) && uform_arena_busy(f.arena) && !f.embeddings.data);

    other.encode.executor = f.executor;
    CHECK_STATUS(other.run_encode(), uform_contended_k);
    CHECK(says(UFORM_NO_ITEM, "executor") && uform_arena_generation(other.arena) == 0);
    CHECK(!uform_arena_busy(other.arena));
    other.encode.completion = &other.outcome;
    CHECK_STATUS(other.run_encode(), uform_deferred_k);
    CHECK(uform_outcome_status(other.outcome) == uform_contended_k && !uform_arena_busy(other.arena));
    uform_outcome_free(other.outcome);
    other.encode.executor = other.executor;
    other.encode.completion = nullptr;
    other.encode.arena = f.arena;
    CHECK_STATUS(other.run_encode(), uform_contended_k);
    CHECK(says(UFORM_NO_ITEM, "arena"));
    CHECK_STATUS(uform_arena_pin(f.arena, uform_arena_generation(f.arena)), uform_contended_k);

    fake_forward.open = true;
    CHECK_STATUS(uform_outcome_wait(f.outcome), uform_success_k);
    CHECK(!uform_executor_busy(f.executor) && !uform_arena_busy(f.arena));
    check_encoded(f);
    uform_outcome_free(f.outcome);
}

static void dropping_waits() {
    fixture_t f;
    f.choose.executor = f.executor;
    f.choose.completion = &f.outcome;
    for (int round = 0; round != 300; ++round) {
        f.probabilities = {};
        CHECK_STATUS(f.run_choose(), uform_deferred_k);
        uform_outcome_free(f.outcome);
        CHECK(f.probabilities.count == 4);
    }
    // The arena, then the executor, go away in the middle of calls.
    for (int round = 0; round != 100; ++round) {
        fixture_t raced;
        raced.choose.executor = raced.executor;
        raced.choose.completion = &raced.outcome;
        CHECK_STATUS(raced.run_choose(), uform_deferred_k);
        uform_arena_free(raced.arena);
        uform_executor_free(raced.executor);
        raced.arena = nullptr, raced.executor = nullptr;
        CHECK_STATUS(uform_outcome_wait(raced.outcome), uform_success_k);
        uform_outcome_free(raced.outcome);
    }
}

static void waiting_frees_what_the_call_held() {
    fixture_t f;
    f.encode.executor = f.executor;
    f.encode.completion = &f.outcome;
    for (int round = 0; round != 20000 && !check_faults; ++round) {
        CHECK_STATUS(f.run_encode(), uform_deferred_k);
        CHECK_STATUS(uform_outcome_wait(f.outcome), uform_success_k);
        uform_outcome_free(f.outcome);
    }
    check_encoded(f);
}

struct progress_log_t {
    std::vector<size_t> completed;
    size_t stop_at = SIZE_MAX;
    fixture_t *fixture = nullptr;
    uform_status_t nested = uform_success_k;
};

static bool note_progress(void *context, size_t completed, size_t total) {
    auto &log = *static_cast<progress_log_t *>(context);
    if (total != 4) std::abort();
    log.completed.push_back(completed);
    if (log.fixture) {
        uform_arena_t *arena = nullptr;
        if (uform_arena_init(nullptr, &arena) != uform_success_k) std::abort();
        uform_text_encode_t nested = log.fixture->encode;
        nested.arena = arena;
        log.nested = uform_text_encode(&log.fixture->model, &nested);
        uform_arena_free(arena);
    }
    return completed < log.stop_at;
}

static void progress_rises_and_stops() {
    fixture_t f;
    progress_log_t log;
    f.encode.progress = f.choose.progress = note_progress;
    f.encode.progress_context = f.choose.progress_context = &log;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK((log.completed == std::vector<size_t> {2, 3, 4}));
    log.completed.clear();
    CHECK_STATUS(f.run_choose(), uform_success_k);
    CHECK((log.completed == std::vector<size_t> {1, 2, 3, 4}));

    log.stop_at = 3;
    f.embeddings = {};
    f.stats = {99, 99};
    uint64_t const generation = uform_arena_generation(f.arena);
    CHECK_STATUS(f.run_encode(), uform_cancelled_k);
    CHECK(says(UFORM_NO_ITEM, "handler") && !f.embeddings.data && f.stats.encoded_tokens == 99);
    CHECK(uform_arena_generation(f.arena) == generation + 1 && !uform_arena_busy(f.arena));
    CHECK_STATUS(uform_arena_pin(f.arena, generation), uform_invalid_argument_k);

    f.encode.executor = f.executor;
    f.encode.completion = &f.outcome;
    CHECK_STATUS(f.run_encode(), uform_deferred_k);
    CHECK_STATUS(uform_outcome_wait(f.outcome), uform_cancelled_k);
    uform_failure_t failure;
    uform_outcome_failure(f.outcome, &failure);
    CHECK(std::strstr(failure.message, "handler") && !f.embeddings.data);
    uform_outcome_free(f.outcome);

    tape_t const empties {"", "", "", ""};
    f.encode.completion = nullptr;
    f.encode.texts = empties;
    log.completed.clear();
    CHECK_STATUS(f.run_encode(), uform_cancelled_k);
    CHECK((log.completed == std::vector<size_t> {4}));

    // A call on the same executor from inside.
    f.encode.texts = f.texts;
    log.stop_at = SIZE_MAX;
    log.fixture = &f;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    CHECK(log.nested == uform_contended_k);
}

static void failures_of_the_pass_publish_nothing() {
    fixture_t f;
    fake_forward.status = uform_out_of_memory_k;
    CHECK_STATUS(f.run_encode(), uform_out_of_memory_k);
    CHECK(says(UFORM_NO_ITEM, "memory") && !f.embeddings.data && f.stats.encoded_tokens == 99);
    fake_forward.status = uform_internal_k;
    CHECK_STATUS(f.run_choose(), uform_internal_k);
    CHECK(says(UFORM_NO_ITEM, "INTERNAL") && !f.probabilities.offsets);
    fake_forward.status = uform_success_k;
    f.model.config.hidden = SIZE_MAX / 8;
    CHECK_STATUS(f.run_encode(), uform_out_of_memory_k);
    f.model.config.hidden = size_t(1) << 55;
    CHECK_STATUS(f.run_encode(), uform_out_of_memory_k);
    CHECK(says(UFORM_NO_ITEM, "arena") && !f.embeddings.data);
    f.model.config.hidden = 8;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    check_encoded(f);
}

static void lent_memory_takes_outputs() {
    fixture_t f;
    size_t alive = 0;
    uform_allocator_t allocator;
    allocator.handle = &alive;
    allocator.allocate = [](void *handle, size_t bytes) -> void * {
        *static_cast<size_t *>(handle) += bytes;
        return std::aligned_alloc(64, bytes);
    };
    allocator.free = [](void *handle, void *pointer, size_t bytes) {
        *static_cast<size_t *>(handle) -= bytes;
        std::free(pointer);
    };
    uform_arena_t *arena = nullptr;
    CHECK_STATUS(uform_arena_init_over(&allocator, &arena), uform_success_k);
    f.encode.arena = arena;
    for (int round = 0; round != 2; ++round) {
        CHECK_STATUS(f.run_encode(), uform_success_k);
        check_encoded(f);
        // 64 + 704 + 192 + 64 bytes of surfaces.
        CHECK(alive == 1024 && uform_arena_capacity(arena) == 1024);
    }
    f.encode.executor = f.executor;
    f.encode.completion = &f.outcome;
    CHECK_STATUS(f.run_encode(), uform_deferred_k);
    CHECK_STATUS(uform_outcome_wait(f.outcome), uform_success_k);
    uform_outcome_free(f.outcome);
    check_encoded(f);
    uform_arena_free(arena);
    CHECK(alive == 0);
}

#if !defined(__SANITIZE_THREAD__) // It cannot follow threads that a forked child starts.

static void children_of_a_fork_encode() {
    fixture_t f;
    f.encode.executor = f.executor;
    CHECK_STATUS(f.run_encode(), uform_success_k);
    f.encode.completion = &f.outcome;
    fake_forward.open = false;
    CHECK_STATUS(f.run_encode(), uform_deferred_k);
    while (!fake_forward.inside) std::this_thread::yield();
    uform_outcome_t *const running = f.outcome;
    pid_t const child = fork();
    if (child == 0) {
        alarm(20);
        check_faults = 0;
        fake_forward.open = true;
        CHECK(uform_outcome_status(running) == uform_cancelled_k);
        uform_outcome_free(running);
        CHECK_STATUS(f.run_encode(), uform_deferred_k);
        CHECK_STATUS(uform_outcome_wait(f.outcome), uform_success_k);
        check_encoded(f);
        uform_outcome_free(f.outcome);
        f.encode.completion = nullptr;
        CHECK_STATUS(f.run_encode(), uform_success_k);
        uform_arena_free(f.arena);
        uform_executor_free(f.executor);
        _exit(check_faults != 0);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    fake_forward.open = true;
    CHECK_STATUS(uform_outcome_wait(running), uform_success_k);
    uform_outcome_free(running);
    check_encoded(f);
}

#endif

int main() {
    RUN(texts_are_encoded);
    RUN(scalars_are_landed);
    RUN(outputs_left_out_are_not_computed);
    RUN(empty_batches_have_shapes);
    RUN(choices_are_scored);
    RUN(bad_arguments_are_refused);
    RUN(classes_are_resolved);
    RUN(pinned_arenas_are_contended);
    RUN(calls_contend);
    RUN(dropping_waits);
    RUN(waiting_frees_what_the_call_held);
    RUN(progress_rises_and_stops);
    RUN(failures_of_the_pass_publish_nothing);
    RUN(lent_memory_takes_outputs);
#if !defined(__SANITIZE_THREAD__)
    RUN(children_of_a_fork_encode);
#endif
    return check_report();
}

#if defined(__SANITIZE_ADDRESS__)
extern "C" char const *__asan_default_options() { return "allocator_may_return_null=1"; }
#elif defined(__SANITIZE_THREAD__)
extern "C" char const *__tsan_default_options() { return "allocator_may_return_null=1"; }
#endif
