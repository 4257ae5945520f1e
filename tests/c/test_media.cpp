/** The media verbs on pixels and samples through the real network: bits, segments, skipping, refusals, deferral. */
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "check.h"
#include "checkpoint.h"
#include "uform/encode.h"

struct model_deleter_t {
    void operator()(uform_model_t *model) const { uform_model_free(model); }
};

static std::unique_ptr<uform_model_t, model_deleter_t> loaded(bool takes_media) {
    checkpoint_t checkpoint(sizes_t {.context = 40});
    if (takes_media) {
        checkpoint.add("embed.image", {64, 48});
        checkpoint.add("embed.audio", {64, 320});
        checkpoint.config.insert(checkpoint.config.size() - 1,
                                 ",\"image\":{\"patch_side\":4,\"max_patches\":20},"
                                 "\"audio\":{\"sample_rate\":16000,\"mel_bins\":80,\"frames_per_token\":4}");
    }
    std::string const file = checkpoint.file();
    uform_model_t *model = nullptr;
    CHECK_STATUS(uform_model_load_ram_buffer(file.data(), file.size(), nullptr, &model), uform_success_k);
    return std::unique_ptr<uform_model_t, model_deleter_t>(model);
}

/** Pictures and recordings of many sizes, their views, an arena, and arguments of both verbs that name all outputs. */
struct fixture_t {
    std::unique_ptr<uform_model_t, model_deleter_t> model = loaded(true);
    uform_arena_t *arena = nullptr;
    std::vector<std::vector<uint8_t>> bytes;
    std::vector<uform_pixels_t> pixels;
    std::vector<std::vector<float>> waves;
    std::vector<uform_samples_t> samples;
    uform_rows_t embeddings {};
    uform_rows_tape_t states {}, token_vectors {};
    uform_image_encode_stats_t image_stats {};
    uform_audio_encode_stats_t audio_stats {};
    uform_image_encode_pixels_t image {};
    uform_audio_encode_samples_t audio {};

    fixture_t() {
        CHECK_STATUS(uform_arena_init(nullptr, &arena), uform_success_k);
        unsigned seed = 1;
        auto const next = [&] { return (seed = seed * 1664525u + 1013904223u) >> 16; };
        for (size_t index = 0; index != 9; ++index) {
            size_t const height = 1 + next() % 40, width = 1 + next() % 40;
            std::vector<uint8_t> picture(3 * height * width);
            for (uint8_t &byte : picture) byte = uint8_t(next());
            bytes.push_back(std::move(picture));
            pixels.push_back({bytes.back().data(), height, width});
        }
        for (size_t count : {0, 1, 639, 640, 641, 5000, 40000}) {
            std::vector<float> wave(count);
            for (float &sample : wave) sample = float(next() % 2001) / 1000 - 1;
            waves.push_back(std::move(wave));
            samples.push_back({waves.back().data(), count});
        }
        image.arena = audio.arena = arena;
        image.embeddings = audio.embeddings = &embeddings;
        image.states = audio.states = &states;
        image.token_vectors = audio.token_vectors = &token_vectors;
        image.pixels = pixels.data();
        image.count = pixels.size();
        image.stats = &image_stats;
        audio.samples = samples.data();
        audio.count = samples.size();
        audio.sample_rate = 16000;
        audio.stats = &audio_stats;
    }
    ~fixture_t() { uform_arena_free(arena); }

    /** All outputs, one after another. */
    std::string outputs() const {
        std::string all(static_cast<char const *>(embeddings.data), embeddings.rows * embeddings.row_bytes);
        for (uform_rows_tape_t const *tape : {&states, &token_vectors}) {
            all.append(static_cast<char const *>(tape->rows.data), tape->rows.rows * tape->rows.row_bytes);
            all.append(reinterpret_cast<char const *>(tape->offsets), (tape->count + 1) * sizeof(size_t));
        }
        return all;
    }
};

static bool says(uform_status_t expected, size_t item, char const *part) {
    uform_failure_t failure;
    uform_last_failure(&failure);
    if (failure.status == expected && failure.item == item && std::strstr(failure.message, part)) return true;
    std::fprintf(stderr, "  %s, item %zu: %s\n", uform_status_name(failure.status), failure.item, failure.message);
    return false;
}

static void bits_do_not_depend_on_threads() {
    fixture_t f;
    CHECK_STATUS(uform_image_encode_pixels(f.model.get(), &f.image), uform_success_k);
    std::string const pictures = f.outputs();
    CHECK(f.image_stats.encoded_tokens == f.states.rows.rows && f.image_stats.malformed_items == 0);
    CHECK_STATUS(uform_audio_encode_samples(f.model.get(), &f.audio), uform_success_k);
    std::string const recordings = f.outputs();
    for (size_t threads = 1; threads != 4; ++threads) {
        uform_executor_t *executor = nullptr;
        uform_executor_ram_t options {};
        options.threads = threads;
        CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
        f.image.executor = f.audio.executor = executor;
        CHECK_STATUS(uform_image_encode_pixels(f.model.get(), &f.image), uform_success_k);
        CHECK(f.outputs() == pictures);
        uform_outcome_t *outcome = nullptr;
        f.audio.completion = &outcome;
        CHECK_STATUS(uform_audio_encode_samples(f.model.get(), &f.audio), uform_deferred_k);
        CHECK_STATUS(uform_outcome_wait(outcome), uform_success_k);
        uform_outcome_free(outcome);
        f.audio.completion = nullptr;
        CHECK(f.outputs() == recordings);
        uform_executor_free(executor);
    }
}

static void recordings_have_as_many_tokens_as_they_fill() {
    fixture_t f;
    CHECK_STATUS(uform_audio_encode_samples(f.model.get(), &f.audio), uform_success_k);
    size_t const offsets[] = {0, 0, 1, 2, 3, 5, 13, 53};
    CHECK(f.states.count == 7 && !std::memcmp(f.states.offsets, offsets, sizeof(offsets)));
    CHECK(f.audio_stats.truncated_items == 1 && f.audio_stats.encoded_tokens == 53);
    CHECK(std::fabs(f.audio_stats.encoded_seconds - (1 + 639 + 640 + 641 + 5000 + 25600) / 16000.0) < 1e-9);
    auto const *embeddings = static_cast<float const *>(f.embeddings.data);
    for (size_t item = 0; item != 7; ++item) {
        double squares = 0;
        for (size_t column = 0; column != f.embeddings.columns; ++column, ++embeddings)
            squares += double(*embeddings) * *embeddings;
        CHECK(std::fabs(squares - (item ? 1 : 0)) < 1e-5);
    }
}

static void items_are_refused_by_index() {
    fixture_t f;
    f.pixels[5].height = 0;
    f.pixels[7].data = nullptr;
    for (size_t round = 0; round != 3; ++round) {
        uform_executor_t *executor = nullptr;
        CHECK_STATUS(uform_executor_init_ram(nullptr, &executor), uform_success_k);
        f.image.executor = executor;
        CHECK(uform_image_encode_pixels(f.model.get(), &f.image) == uform_shape_mismatch_k);
        CHECK(says(uform_shape_mismatch_k, 5, "pixels: item 5: a picture of"));
        uform_executor_free(executor);
    }
    f.image.executor = nullptr;
    f.waves[4][17] = std::numeric_limits<float>::quiet_NaN();
    f.waves[6][30000] = std::numeric_limits<float>::infinity(); // Past the context.
    CHECK(uform_audio_encode_samples(f.model.get(), &f.audio) == uform_malformed_k);
    CHECK(says(uform_malformed_k, 4, "samples: item 4: sample 17 is nan"));
    f.waves[4][17] = 20000; // Of 16 bits.
    CHECK(uform_audio_encode_samples(f.model.get(), &f.audio) == uform_malformed_k);
    CHECK(says(uform_malformed_k, 4, "samples: item 4: sample 17 is 20000"));
    f.waves[4][17] = 0;
    CHECK_STATUS(uform_audio_encode_samples(f.model.get(), &f.audio), uform_success_k);
}

static void arguments_are_checked() {
    fixture_t f;
    CHECK(uform_image_encode_pixels(nullptr, &f.image) == uform_invalid_argument_k);
    CHECK(uform_image_encode_pixels(f.model.get(), nullptr) == uform_invalid_argument_k);
    f.image.pixels = nullptr;
    CHECK(uform_image_encode_pixels(f.model.get(), &f.image) == uform_invalid_argument_k);
    CHECK(says(uform_invalid_argument_k, UFORM_NO_ITEM, "pixels: NULL, but there are 9 items"));
    f.image.count = 0;
    CHECK_STATUS(uform_image_encode_pixels(f.model.get(), &f.image), uform_success_k);
    CHECK(f.embeddings.rows == 0 && f.states.rows.rows == 0 && f.states.offsets[0] == 0);
    for (uint32_t rate : {0u, 999u, 768001u}) {
        f.audio.sample_rate = rate;
        CHECK(uform_audio_encode_samples(f.model.get(), &f.audio) == uform_invalid_argument_k);
        CHECK(says(uform_invalid_argument_k, UFORM_NO_ITEM, "sample_rate"));
    }
    uform_video_encode_t video {};
    video.arena = f.arena;
    CHECK(uform_video_encode(f.model.get(), &video) == uform_unsupported_k);
    CHECK(says(uform_unsupported_k, UFORM_NO_ITEM, "takes no videos"));
    auto const text_alone = loaded(false);
    CHECK(uform_audio_encode_samples(text_alone.get(), &f.audio) == uform_unsupported_k);
    CHECK(says(uform_unsupported_k, UFORM_NO_ITEM, "takes no recordings"));
}

static void a_handler_stops_the_call() {
    fixture_t f;
    size_t calls = 0;
    f.image.progress = [](void *context, size_t completed, size_t total) {
        return ++*static_cast<size_t *>(context), completed < total;
    };
    f.image.progress_context = &calls;
    f.embeddings.rows = 77;
    CHECK(uform_image_encode_pixels(f.model.get(), &f.image) == uform_cancelled_k);
    CHECK(calls > 0 && f.embeddings.rows == 77);
}

int main() {
    RUN(bits_do_not_depend_on_threads);
    RUN(recordings_have_as_many_tokens_as_they_fill);
    RUN(items_are_refused_by_index);
    RUN(arguments_are_checked);
    RUN(a_handler_stops_the_call);
    return check_report();
}
