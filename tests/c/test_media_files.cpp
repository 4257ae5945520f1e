/**
 *  The media verbs on files, decoded by threads while others compute: `test_media_files PICTURES CLIPS`, with the
 *  folders of tests/media_files.py and tests/clip_files.py. The libraries of decoders lie beside the program.
 */
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "check.h"
#include "checkpoint.h"
#include "uform/encode.h"

static std::filesystem::path pictures, clips;

struct model_deleter_t {
    void operator()(uform_model_t *model) const { uform_model_free(model); }
};
using model_pointer_t = std::unique_ptr<uform_model_t, model_deleter_t>;

static model_pointer_t load_model() {
    checkpoint_t checkpoint(sizes_t {.context = 64});
    checkpoint.add("embed.image", {64, 48});
    checkpoint.add("embed.video", {64, 96});
    checkpoint.add("embed.audio", {64, 320});
    checkpoint.config.insert(
        checkpoint.config.size() - 1,
        ",\"image\":{\"patch_side\":4,\"max_patches\":20},"
        "\"video\":{\"patch_side\":4,\"frames\":2,\"frame_rate\":4.0,\"max_patches\":12,\"max_frames\":8},"
        "\"audio\":{\"sample_rate\":16000,\"mel_bins\":80,\"frames_per_token\":4}");
    std::string const file = checkpoint.file();
    uform_model_t *model = nullptr;
    CHECK_STATUS(uform_model_load_ram_buffer(file.data(), file.size(), nullptr, &model), uform_success_k);
    return model_pointer_t(model);
}

/** All files of a folder, in the order of their names. */
struct files_t {
    std::vector<std::string> names;
    std::string data;
    std::vector<size_t> offsets {0};

    explicit files_t(std::filesystem::path const &folder) {
        for (auto const &entry : std::filesystem::directory_iterator(folder)) names.push_back(entry.path().filename());
        std::sort(names.begin(), names.end());
        for (std::string const &name : names) {
            std::ifstream input(folder / name, std::ios::binary);
            data.append(std::istreambuf_iterator<char>(input), {});
            offsets.push_back(data.size());
        }
    }
    uform_tape_t tape() const { return {data.data(), data.size(), offsets.data(), names.size()}; }
    size_t index(char const *name) const { return size_t(std::find(names.begin(), names.end(), name) - names.begin()); }
};

/** What a call gives: the statuses of all items, and every bit of the outputs. */
struct result_t {
    bool is_whole = false; /**< Whether the call succeeded, and its outputs fit each other. */
    std::vector<uform_status_t> statuses;
    std::string outputs;

    bool operator==(result_t const &other) const = default;
};

template <typename arguments_type_, typename stats_type_>
static result_t encode(uform_status_t (*verb)(uform_model_t const *, arguments_type_ const *),
                       uform_model_t const *model, uform_executor_t *executor, files_t const &files,
                       stats_type_ &stats) {
    uform_arena_t *arena = nullptr;
    std::vector<uform_item_fault_t> faults(files.names.size());
    uform_rows_t embeddings {};
    uform_rows_tape_t states {};
    result_t result;
    if (uform_arena_init(executor, &arena)) return result;
    arguments_type_ call {};
    call.executor = executor;
    call.arena = arena;
    call.files = files.tape();
    call.faults = faults.data();
    call.embeddings = &embeddings;
    call.states = &states;
    call.stats = &stats;
    result.is_whole = !verb(model, &call) && embeddings.rows == files.names.size() &&
                      states.count == files.names.size() && states.rows.rows == stats.encoded_tokens;
    for (uform_item_fault_t const &fault : faults) {
        result.statuses.push_back(fault.status);
        result.is_whole &= !fault.status == !fault.message[0];
    }
    if (result.is_whole) {
        result.outputs.assign(static_cast<char const *>(embeddings.data), embeddings.rows * embeddings.row_bytes);
        result.outputs.append(static_cast<char const *>(states.rows.data), states.rows.rows * states.rows.row_bytes);
    }
    uform_arena_free(arena);
    return result;
}

/** On the calling thread and on executors of one to three threads: the same bits. */
template <typename stats_type_, typename arguments_type_>
static result_t encode_anywhere(uform_status_t (*verb)(uform_model_t const *, arguments_type_ const *),
                                files_t const &files, stats_type_ &stats) {
    model_pointer_t const model = load_model();
    result_t const expected = encode(verb, model.get(), nullptr, files, stats);
    CHECK(expected.is_whole);
    for (size_t threads = 1; threads != 4; ++threads) {
        uform_executor_t *executor = nullptr;
        uform_executor_ram_t options {};
        options.threads = threads;
        CHECK_STATUS(uform_executor_init_ram(&options, &executor), uform_success_k);
        stats_type_ again {};
        CHECK(encode(verb, model.get(), executor, files, again) == expected);
        CHECK(again.malformed_items == stats.malformed_items && again.decoded_bytes == stats.decoded_bytes);
        uform_executor_free(executor);
    }
    return expected;
}

static void pictures_are_encoded_by_any_threads() {
    files_t const files(pictures);
    uform_image_encode_stats_t stats {};
    result_t const result = encode_anywhere(uform_image_encode, files, stats);
    for (char const *name : {"photo.png", "photo.webp", "photo_420.jpg", "cmyk.jpg", "animation.png", "size_1x1.webp"})
        CHECK(result.statuses.at(files.index(name)) == uform_success_k);
    for (char const *name : {"other.gif", "other.txt", "other.tiff"})
        CHECK(result.statuses.at(files.index(name)) == uform_unsupported_layout_k);
    CHECK(stats.malformed_items ==
          files.names.size() - size_t(std::count(result.statuses.begin(), result.statuses.end(), uform_success_k)));
}

static void videos_are_encoded_by_any_threads() {
    files_t const files(clips);
    uform_video_encode_stats_t stats {};
    result_t const result = encode_anywhere(uform_video_encode, files, stats);
    for (char const *name : {"h264.mp4", "hevc.mp4", "vp8.webm", "vp9.webm", "av1.mp4", "late.webm"})
        CHECK(result.statuses.at(files.index(name)) == uform_success_k);
    for (char const *name : {"tone_48000.wav", "cover.png"})
        CHECK(result.statuses.at(files.index(name)) == uform_unsupported_layout_k);
    CHECK(stats.encoded_frames > 0 && stats.malformed_items < files.names.size());
}

static void recordings_are_encoded_by_any_threads() {
    files_t const files(clips);
    uform_audio_encode_stats_t stats {};
    result_t const result = encode_anywhere(uform_audio_encode, files, stats);
    for (char const *name : {"pcm_16.wav", "pcm_24.flac", "tone.mp3", "tone.opus", "tone.webm"})
        CHECK(result.statuses.at(files.index(name)) == uform_success_k);
    CHECK(result.statuses.at(files.index("cover.png")) == uform_unsupported_layout_k);
    CHECK(stats.encoded_seconds > 0 && stats.malformed_items < files.names.size());
}

/** The decoders are loaded by whoever comes first, and executors share nothing. */
static void executors_decode_at_once() {
    files_t const files(pictures);
    model_pointer_t const model = load_model();
    std::vector<result_t> results(3);
    std::vector<std::thread> threads;
    for (result_t &result : results)
        threads.emplace_back([&] {
            uform_executor_t *executor = nullptr;
            uform_executor_ram_t options {};
            options.threads = 2;
            if (uform_executor_init_ram(&options, &executor)) return;
            uform_image_encode_stats_t stats {};
            result = encode(uform_image_encode, model.get(), executor, files, stats);
            uform_executor_free(executor);
        });
    for (auto &thread : threads) thread.join();
    CHECK(results[0].is_whole && results[0] == results[1] && results[0] == results[2]);
}

int main(int count, char **arguments) {
    if (count != 3) return std::fprintf(stderr, "usage: %s PICTURES CLIPS\n", arguments[0]), 2;
    pictures = arguments[1], clips = arguments[2];
    RUN(executors_decode_at_once);
    RUN(pictures_are_encoded_by_any_threads);
    RUN(videos_are_encoded_by_any_threads);
    RUN(recordings_are_encoded_by_any_threads);
    return check_report();
}
