/**
 *  Loading of checkpoints: where every number comes to lie, what is refused, executors, progress.
 *  `test_load PATH...` loads the checkpoints as well.
 */
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"
#include "checkpoint.h"
#include "core/failure.h"
#include "model/model.h"

using namespace uform;

struct model_deleter_t {
    void operator()(uform_model_t *model) const { uform_model_free(model); }
};
using model_pointer_t = std::unique_ptr<uform_model_t, model_deleter_t>;

static uform_status_t load(std::string const &file, model_pointer_t &model,
                           uform_model_load_ram_t const &options = {}) {
    // A copy of just the size: a sanitizer sees what is read past its end.
    std::vector<char> const exact(file.begin(), file.end());
    uform_model_t *loaded = nullptr;
    uform_status_t const status = uform_model_load_ram_buffer(exact.data(), exact.size(), &options, &loaded);
    model.reset(loaded);
    return status;
}

/** Checks a refusal: its status, what its message says, and that nothing came of it. */
static void refuses(std::string const &file, uform_status_t expected, char const *message,
                    uform_model_load_ram_t const &options = {}) {
    model_pointer_t model;
    uform_status_t const got = load(file, model, options);
    if (got == expected && std::strstr(last_failure().message, message) && !model) return;
    ++check_faults;
    std::fprintf(stderr, "%s (%s), not %s (%s)\n", uform_status_name(got), last_failure().message,
                 uform_status_name(expected), message);
}

static bf16_t stored(std::string const &name, size_t index) { return f32_to_bf16(checkpoint_t::value(name, index)); }

/** Whether a packed matrix holds the tensor, and zeros around it. `order`: the tensor's row that a packed row is. */
template <typename order_type_>
static bool holds(packed_t const &packed, std::string const &name, size_t rows, size_t columns, order_type_ order) {
    if (packed.rows != rows || packed.columns != columns || !packed.data || packed.data_e4m3) return false;
    if (reinterpret_cast<uintptr_t>(packed.data) % 64) return false;
    size_t const half = packed.padded_columns() / 2;
    for (size_t row = 0; row != packed.padded_rows(); ++row)
        for (size_t column = 0; column != packed.padded_columns(); ++column) {
            bf16_t const got = packed.data[((row / 16 * half + column / 2) * 16 + row % 16) * 2 + column % 2];
            bool const inside = row < rows && column < columns;
            if (got != (inside ? stored(name, order(row) * columns + column) : 0)) return false;
        }
    return true;
}

static size_t in_order(size_t row) { return row; }

static void every_number_comes_to_its_place() {
    sizes_t const sizes {.depth = 2, .hidden = 96, .head_dimension = 32, .width = 128};
    model_pointer_t model;
    CHECK_STATUS(load(checkpoint_t(sizes).file(), model), uform_success_k);
    if (!model) return;
    auto const gain = [](float const *values, std::string const &name, size_t count) {
        for (size_t index = 0; index != count; ++index)
            if (values[index] != checkpoint_t::value(name, index)) return false;
        return true;
    };
    bool same = true;
    for (size_t index = 0; index != 257 * sizes.hidden; ++index)
        same &= model->text_embeddings[index] ==
                checkpoint_t::value("embed.bytes", index) + checkpoint_t::value("embed.modality", index % sizes.hidden);
    CHECK(same);
    CHECK(model->blocks.size() == 2);
    for (size_t index = 0; index != 2; ++index) {
        block_t const &block = model->blocks[index];
        std::string const prefix = "blocks." + std::to_string(index) + ".";
        CHECK(gain(block.attention_norm, prefix + "attention.norm", 96));
        CHECK(gain(block.query_norm, prefix + "attention.query_norm", 32));
        CHECK(gain(block.key_norm, prefix + "attention.key_norm", 32));
        CHECK(gain(block.mlp_norm, prefix + "mlp.norm", 96));
        CHECK(holds(block.qkv, prefix + "attention.qkv", 288, 96, in_order));
        CHECK(holds(block.output, prefix + "attention.output", 96, 96, in_order));
        CHECK(holds(block.down, prefix + "mlp.down", 96, 128, in_order));
        // Packed rows 0-15 are gate rows 0-15, 16-31 are up rows 0-15 (128 and on in the tensor), then gate 16-31.
        CHECK(holds(block.gate_up, prefix + "mlp.gate_up", 256, 96,
                    [](size_t row) { return row / 32 * 16 + row % 16 + (row / 16 % 2 ? 128 : 0); }));
    }
    CHECK(gain(model->final_norm, "final.norm", 96));
    CHECK(holds(model->embedding_head, "heads.embedding", 40, 96, in_order));
    CHECK(holds(model->token_head, "heads.tokens", 5, 96, in_order));
    CHECK(holds(model->byte_head, "heads.bytes", 256, 96, in_order));
    CHECK(gain(model->inverse_temperatures, "heads.inverse_temperatures", 3));
}

static void packed_elements_lie_where_packed_h_says() {
    model_pointer_t model;
    CHECK_STATUS(load(checkpoint_t().file(), model), uform_success_k);
    if (!model) return;
    block_t const &block = model->blocks[1];
    char const *const qkv = "blocks.1.attention.qkv", *const gate_up = "blocks.1.mlp.gate_up";
    // Of 64 columns, written out: a pair of columns is 32 numbers, a panel of 16 rows 1024.
    CHECK(block.qkv.data[0] == stored(qkv, 0 * 64 + 0));
    CHECK(block.qkv.data[1] == stored(qkv, 0 * 64 + 1));
    CHECK(block.qkv.data[2] == stored(qkv, 1 * 64 + 0));
    CHECK(block.qkv.data[31] == stored(qkv, 15 * 64 + 1));
    CHECK(block.qkv.data[32] == stored(qkv, 0 * 64 + 2));
    CHECK(block.qkv.data[1023] == stored(qkv, 15 * 64 + 63));
    CHECK(block.qkv.data[1024] == stored(qkv, 16 * 64 + 0));
    CHECK(block.qkv.data[192 * 64 - 1] == stored(qkv, 191 * 64 + 63));
    CHECK(block.gate_up.data[0] == stored(gate_up, 0));
    CHECK(block.gate_up.data[1024] == stored(gate_up, 64 * 64));
    CHECK(block.gate_up.data[2 * 1024] == stored(gate_up, 16 * 64));
    CHECK(block.gate_up.data[3 * 1024 + 1] == stored(gate_up, (64 + 16) * 64 + 1));
}

static void e4m3_has_a_scale_a_row() {
    checkpoint_t checkpoint;
    char const *const name = "blocks.0.attention.qkv";
    for (size_t column = 0; column != 64; ++column) checkpoint.poke(name, 3 * 64 + column, column == 7 ? -0.f : 0.f);
    for (size_t column = 0; column != 64; ++column) checkpoint.poke(name, 4 * 64 + column, column == 9 ? -7.f : 0.f);
    for (size_t column = 0; column != 64; ++column)
        checkpoint.poke(name, 5 * 64 + column, column == 9 ? 0x1p-133f : 0.f);
    model_pointer_t model, wide;
    uform_model_load_ram_t options {};
    options.quantization = uform_e4m3_k;
    CHECK_STATUS(load(checkpoint.file(), model, options), uform_success_k);
    options.quantization = uform_bf16_k;
    CHECK_STATUS(load(checkpoint.file(), wide, options), uform_success_k);
    if (!model || !wide) return;
    for (size_t index = 0; index != 2; ++index) {
        packed_t const block_t::*const matrices[] = {&block_t::qkv, &block_t::output, &block_t::gate_up,
                                                     &block_t::down};
        for (auto matrix : matrices) {
            packed_t const &codes = model->blocks[index].*matrix, &numbers = wide->blocks[index].*matrix;
            CHECK(!codes.data && codes.data_e4m3 && codes.scales && codes.rows == numbers.rows);
            CHECK(reinterpret_cast<uintptr_t>(codes.data_e4m3) % 64 == 0);
            bool right = true;
            for (size_t row = 0; row != codes.padded_rows(); ++row) {
                size_t const first = row / 16 * 16 * codes.padded_columns() + row % 16 * 2;
                float largest = 0;
                for (size_t column = 0; column != codes.padded_columns(); ++column)
                    largest =
                        std::max(largest, std::fabs(bf16_to_f32(numbers.data[first + column / 2 * 32 + column % 2])));
                right &= codes.scales[row] == largest / 448.f;
                for (size_t column = 0; column != codes.padded_columns(); ++column) {
                    size_t const place = first + column / 2 * 32 + column % 2;
                    e4m3_t const code = codes.data_e4m3[place];
                    float const number = bf16_to_f32(numbers.data[place]);
                    right &= (code & 0x7f) != 0x7f;
                    right &= code == (codes.scales[row] > 0 ? f32_to_e4m3(number / codes.scales[row]) : 0);
                    // Half a step of the largest binade, and half of the smallest subnormal.
                    right &= std::fabs(e4m3_to_f32(code) * codes.scales[row] - number) <=
                             std::max(std::fabs(number) / 15.9f, largest / 448.f * 0x1p-9f);
                }
            }
            CHECK(right);
        }
    }
    packed_t const &qkv = model->blocks[0].qkv;
    CHECK(qkv.scales[3] == 0 && qkv.data_e4m3[3 * 2] == 0 && qkv.data_e4m3[7 / 2 * 32 + 3 * 2 + 1] == 0);
    CHECK(qkv.scales[4] == 7.f / 448 && qkv.data_e4m3[9 / 2 * 32 + 4 * 2 + 1] == 0xfe);
    CHECK(std::isfinite(qkv.scales[5]));
    CHECK(model->embedding_head.data && model->token_head.data && model->byte_head.data);
}

static void rotary_positions_turn_half_of_the_pairs() {
    checkpoint_t checkpoint(sizes_t {.head_dimension = 64, .context = 300});
    checkpoint.config.insert(checkpoint.config.size() - 1, ",\"rotary_base\":500");
    model_pointer_t model;
    CHECK_STATUS(load(checkpoint.file(), model), uform_success_k);
    if (!model) return;
    bool right = true;
    for (size_t position = 0; position != 300; ++position)
        for (size_t pair = 0; pair != 32; ++pair) {
            double const angle = pair < 16 ? double(position) * std::pow(500.0, -double(pair) / 16) : 0;
            right &= model->rotary[position * 64 + pair] == float(std::cos(angle));
            right &= model->rotary[position * 64 + 32 + pair] == float(std::sin(angle));
        }
    CHECK(right);
    CHECK(model->rotary[0] == 1 && model->rotary[32] == 0 && model->rotary[64] == float(std::cos(1.0)));
}

static void a_model_describes_itself() {
    sizes_t const sizes {.depth = 1, .hidden = 512, .head_dimension = 64, .width = 1408};
    checkpoint_t const checkpoint(sizes);
    std::string const file = checkpoint.file();
    model_pointer_t model, quantized;
    uform_model_load_ram_t options {};
    options.cpu_class = uform_cpu_class_serial_k;
    CHECK_STATUS(load(file, model), uform_success_k);
    options.quantization = uform_e4m3_k;
    CHECK_STATUS(load(file, quantized, options), uform_success_k);
    if (!model || !quantized) return;
    uform_model_description_t description, small;
    uform_model_describe(model.get(), &description);
    uform_model_describe(quantized.get(), &small);
    CHECK(description.dimensions == 40 && description.context == 16 && description.quantization == uform_bf16_k);
    CHECK(description.cpu_class == uform_cpu_class_derive() && !description.cpu_class_pinned);
    CHECK(description.gpu_class == uform_gpu_class_default_k && description.token_width == 5);
    CHECK(description.choice_temperature_groups == 3 && description.depth == 1 && description.hidden == 512);
    CHECK(description.head_dimension == 64);
    size_t parameters = 0;
    for (auto const &[name, tensor] : checkpoint.tensors)
        parameters += tensor.bytes.size() / (tensor.scalar == "F32" ? 4 : 2);
    CHECK(description.parameters == parameters && small.parameters == parameters);
    size_t const big = (3 * 512 * 512 + 512 * 512 + 3 * 1408 * 512);
    CHECK(description.memory_usage >= parameters * 2 && description.memory_usage < parameters * 2 + 1000000);
    CHECK(description.memory_usage - small.memory_usage > big - 50000 &&
          description.memory_usage - small.memory_usage < big);
    CHECK(small.quantization == uform_e4m3_k && small.cpu_class == uform_cpu_class_serial_k && small.cpu_class_pinned);
}

static void heads_are_optional() {
    model_pointer_t model;
    CHECK_STATUS(load(checkpoint_t(sizes_t {.token_width = 0, .choice_temperature_groups = 0}).file(), model),
                 uform_success_k);
    if (!model) return;
    CHECK(!model->token_head && !model->byte_head && !model->inverse_temperatures);
    refuses(checkpoint_t(sizes_t {.token_width = 0}).file() + "x", uform_malformed_k, "1 bytes follow");
    checkpoint_t without(sizes_t {.token_width = 0}), with(sizes_t {.token_width = 5});
    std::swap(without.config, with.config);
    refuses(without.file(), uform_shape_mismatch_k, "`heads.tokens` is missing");
    refuses(with.file(), uform_config_mismatch_k, "`heads.tokens`");
}

/** A configuration with another key. */
static std::string with(std::string config, std::string const &member) {
    return config.insert(config.size() - 1, "," + member);
}

static std::string const image_k = "\"image\":{\"patch_side\":4,\"max_patches\":9}";
static std::string const video_k =
    "\"video\":{\"patch_side\":4,\"max_patches\":6,\"frames\":2,\"max_frames\":8,\"frame_rate\":2.5}";
static std::string const audio_k = "\"audio\":{\"sample_rate\":16000,\"mel_bins\":80,\"frames_per_token\":4}";

static void media_have_shapes_and_tensors() {
    checkpoint_t checkpoint;
    checkpoint.add("embed.image", {64, 48});
    checkpoint.add("embed.video", {64, 96});
    checkpoint.add("embed.audio", {64, 320});
    std::string const text_alone = checkpoint.config;
    for (std::string const &member : {image_k, video_k, audio_k}) checkpoint.config = with(checkpoint.config, member);
    model_pointer_t model;
    CHECK_STATUS(load(checkpoint.file(), model), uform_success_k);
    if (!model) return;
    CHECK(model->config.image.max_patches == 9 && model->config.video.frame_rate == 2.5);
    CHECK(!model->patch_embeddings[0] && holds(model->patch_embeddings[1], "embed.image", 64, 48, in_order));
    CHECK(holds(model->patch_embeddings[2], "embed.video", 64, 96, in_order));
    CHECK(holds(model->patch_embeddings[3], "embed.audio", 64, 320, in_order));
    uform_model_description_t description;
    uform_model_describe(model.get(), &description);
    CHECK(description.modalities == 15 && description.trained_modalities == uform_text_k);
    // A table of rows and columns as long as the longest grid, for an eighth of the head's numbers.
    for (size_t position = 0; position != 9; ++position)
        for (size_t pair = 0; pair != 4; ++pair) {
            double const angle = double(position) * std::pow(10000.0, -double(pair) / 4);
            CHECK(model->rotary_grid[position * 8 + pair] == float(std::cos(angle)));
            CHECK(model->rotary_grid[position * 8 + 4 + pair] == float(std::sin(angle)));
        }

    checkpoint.config = with(text_alone, image_k);
    refuses(checkpoint.file(), uform_config_mismatch_k, "`embed.audio`");
    checkpoint_t without;
    without.config = with(without.config, audio_k);
    refuses(without.file(), uform_shape_mismatch_k, "`embed.audio` is missing");
    without.add("embed.audio", {64, 321});
    refuses(without.file(), uform_shape_mismatch_k, "`embed.audio` has the shape [64, 321], not [64, 320]");
}

static void media_are_refused_by_key() {
    struct {
        char const *member, *message;
    } const wrong[] = {
        {"\"image\":7", "`image`"},
        {"\"image\":{}", "`image.patch_side` is missing"},
        {"\"image\":{\"patch_side\":4}", "`image.max_patches` is missing"},
        {"\"image\":{\"patch_side\":0,\"max_patches\":9}", "`image.patch_side` is 0"},
        {"\"image\":{\"patch_side\":4,\"max_patches\":17}", "`image.max_patches` is above `context`"},
        {"\"image\":{\"patch_side\":4,\"max_patches\":9,\"mean\":0}", "`image.mean` is no key"},
        {"\"image\":{\"patch_side\":4,\"patch_side\":4,\"max_patches\":9}", "twice"},
        {"\"video\":{\"patch_side\":4,\"max_patches\":6,\"frames\":2,\"max_frames\":8}",
         "`video.frame_rate` is missing"},
        {"\"video\":{\"patch_side\":4,\"max_patches\":6,\"frames\":2,\"max_frames\":8,\"frame_rate\":0}",
         "`video.frame_rate` is not from"},
        {"\"video\":{\"patch_side\":4,\"max_patches\":6,\"frames\":17,\"max_frames\":8,\"frame_rate\":1}",
         "`video.frames` is 17"},
        {"\"audio\":{\"sample_rate\":8000,\"mel_bins\":80,\"frames_per_token\":4}", "`audio.sample_rate` is 8000"},
        {"\"audio\":{\"sample_rate\":16000,\"mel_bins\":128,\"frames_per_token\":4}", "`audio.mel_bins` is 128"},
    };
    for (auto const &[member, message] : wrong) {
        checkpoint_t checkpoint;
        checkpoint.config = with(checkpoint.config, member);
        model_pointer_t model;
        uform_status_t const status = load(checkpoint.file(), model);
        CHECK(status == uform_config_mismatch_k || status == uform_malformed_k);
        refuses(checkpoint.file(), status, message);
    }
}

static void wrong_tensors_are_refused_by_name() {
    checkpoint_t const good;
    for (auto const &[name, tensor] : good.tensors) {
        bool const is_f32 = tensor.scalar == "F32";
        checkpoint_t wrong = good;
        wrong.tensors.erase(name);
        refuses(wrong.file(), uform_shape_mismatch_k, ("tensor `" + name + "` is missing").c_str());
        wrong = good;
        wrong.add(name, tensor.shape, is_f32 ? "BF16" : "F32");
        refuses(wrong.file(), uform_unknown_kind_k,
                ("`" + name + (is_f32 ? "` has the scalar BF16, not F32" : "` has the scalar F32, not BF16")).c_str());
        wrong = good;
        auto shape = tensor.shape;
        ++shape[0];
        wrong.add(name, shape, tensor.scalar);
        refuses(wrong.file(), uform_shape_mismatch_k,
                ("`" + name + "` has the shape [" + std::to_string(shape[0])).c_str());
        wrong = good;
        shape = tensor.shape;
        shape.push_back(1);
        wrong.add(name, shape, tensor.scalar);
        refuses(wrong.file(), uform_shape_mismatch_k, (", 1], not [" + std::to_string(tensor.shape[0])).c_str());
        for (float number : {INFINITY, -INFINITY, NAN})
            for (size_t index : {size_t(0), tensor.bytes.size() / (is_f32 ? 4 : 2) - 1}) {
                wrong = good;
                wrong.poke(name, index, number);
                refuses(wrong.file(), uform_malformed_k, ("`" + name + "` has a number that is not finite").c_str());
            }
    }
    checkpoint_t wrong = good;
    wrong.add("blocks.2.mlp.down", {64, 64});
    refuses(wrong.file(), uform_config_mismatch_k, "`blocks.2.mlp.down`");
    wrong = good;
    wrong.add("bias", {64}, "F32");
    refuses(wrong.file(), uform_config_mismatch_k, "`bias`");
    wrong = good;
    wrong.tensors["final.norm"].scalar = "F16";
    refuses(wrong.file(), uform_unknown_kind_k, "`final.norm` has the scalar F16, not BF16");
    for (float number : {0.f, -1.f}) {
        wrong = good;
        wrong.poke("heads.inverse_temperatures", 2, number);
        refuses(wrong.file(), uform_malformed_k, "`heads.inverse_temperatures`");
    }
}

static void other_files_are_refused() {
    checkpoint_t other;
    other.config.clear();
    refuses(other.file(), uform_malformed_k, "no `uform` key");
    other.config = "{\"format\":2}";
    refuses(other.file(), uform_unsupported_k, "format is 2");
    other.config = "hello";
    refuses(other.file(), uform_malformed_k, "configuration");
    // What a small file says of itself is held against its size before memory is asked for.
    other = checkpoint_t();
    other.config =
        checkpoint_t::config_text({.depth = 1024, .hidden = 1048576, .head_dimension = 64, .width = 1048576});
    refuses(other.file(), uform_shape_mismatch_k, "`embed.modality` has the shape [4, 64], not [4, 1048576]");
    refuses("PK\x03\x04 and so on, which is another kind of file", uform_malformed_k, "no safetensors file");
    refuses("", uform_malformed_k, "0 bytes");
}

static void every_truncation_is_refused() {
    std::string const file = checkpoint_t(sizes_t {.depth = 1, .hidden = 32, .dimensions = 1}).file();
    size_t const header = file.find("}}") + 2;
    for (size_t length = 0; length < file.size(); length += length < header + 64 || length + 64 > file.size() ? 1 : 997)
        refuses(file.substr(0, length), uform_malformed_k, "checkpoint");
}

static std::string temporary(char const *name) {
    static std::string const directory = [] {
        char path[] = "/tmp/uform-test-load-XXXXXX";
        return std::string(mkdtemp(path) ? path : ".");
    }();
    return directory + "/" + name;
}

static void write_file(std::string const &path, std::string const &bytes) {
    std::FILE *file = std::fopen(path.c_str(), "wb");
    CHECK(file && std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size());
    if (file) std::fclose(file);
}

static void files_and_buffers_load_alike() {
    std::string const file = checkpoint_t().file(), path = temporary("good.safetensors");
    write_file(path, file);
    model_pointer_t from_buffer;
    CHECK_STATUS(load(file, from_buffer), uform_success_k);
    uform_model_t *from_file = nullptr;
    CHECK_STATUS(uform_model_load_ram(path.c_str(), nullptr, &from_file), uform_success_k);
    if (!from_buffer || !from_file) return;
    CHECK(from_file->memory_usage == from_buffer->memory_usage);
    packed_t const &one = from_file->blocks[1].gate_up, &two = from_buffer->blocks[1].gate_up;
    CHECK(!std::memcmp(one.data, two.data, one.padded_rows() * one.padded_columns() * 2));
    uform_model_free(from_file);
    std::remove(path.c_str());
}

static void paths_are_refused(char const *path, uform_status_t expected, char const *message) {
    uform_model_t *const untouched = reinterpret_cast<uform_model_t *>(64), *model = untouched;
    uform_status_t const got = uform_model_load_ram(path, nullptr, &model);
    CHECK(got == expected && model == untouched);
    if (!std::strstr(last_failure().message, message))
        ++check_faults, std::fprintf(stderr, "%s\n", last_failure().message);
}

static void what_is_no_file_is_an_io_error() {
    std::string const missing = temporary("missing"), pipe = temporary("pipe"), empty = temporary("empty");
    paths_are_refused(missing.c_str(), uform_io_k, "No such file or directory");
    paths_are_refused(missing.c_str(), uform_io_k, missing.c_str());
    paths_are_refused("", uform_io_k, "No such file");
    paths_are_refused("/tmp", uform_io_k, "/tmp is a directory");
    CHECK(mkfifo(pipe.c_str(), 0600) == 0);
    paths_are_refused(pipe.c_str(), uform_io_k, "not a regular file");
    paths_are_refused("/dev/null", uform_io_k, "not a regular file");
    paths_are_refused((missing + "/below").c_str(), uform_io_k, "cannot open");
    write_file(empty, "");
    paths_are_refused(empty.c_str(), uform_malformed_k, "0 bytes");
    if (geteuid() != 0) {
        chmod(empty.c_str(), 0);
        paths_are_refused(empty.c_str(), uform_io_k, "Permission denied");
    }
    paths_are_refused(nullptr, uform_invalid_argument_k, "path");
    std::remove(pipe.c_str());
    std::remove(empty.c_str());
}

static void arguments_are_checked() {
    std::string const file = checkpoint_t().file();
    uform_model_t *model = nullptr;
    CHECK_STATUS(uform_model_load_ram_buffer(nullptr, 5, nullptr, &model), uform_invalid_argument_k);
    CHECK_STATUS(uform_model_load_ram_buffer(file.data(), file.size(), nullptr, nullptr), uform_invalid_argument_k);
    uform_model_load_ram_t options {};
    options.quantization = uform_f32_k;
    refuses(file, uform_unsupported_k, "quantization", options);
    int const strange = 77;
    std::memcpy(&options.quantization, &strange, sizeof(strange));
    refuses(file, uform_unknown_kind_k, "quantization: 77", options);
    options = {};
    std::memcpy(&options.cpu_class, &strange, sizeof(strange));
    refuses(file, uform_unknown_kind_k, "cpu_class: 77", options);
#if defined(__x86_64__)
    options.cpu_class = uform_cpu_class_neon_k;
    refuses(file, uform_unsupported_k, "NEON", options);
#endif
    uform_model_free(nullptr);
}

struct watch_t {
    size_t calls = 0, last = 0, total = 0, stop_at = SIZE_MAX;
    bool in_order = true;
    std::string const *file = nullptr;
    uform_executor_t *executor = nullptr;
    uform_status_t inner = uform_success_k;

    static bool report(void *context, size_t completed, size_t total) {
        watch_t &self = *static_cast<watch_t *>(context);
        self.in_order &= completed == self.last + 1 && completed <= total && (!self.calls || total == self.total);
        self.last = completed, self.total = total, ++self.calls;
        if (self.executor) {
            uform_model_load_ram_t options {};
            options.executor = self.executor;
            uform_model_t *model = nullptr;
            self.inner = uform_model_load_ram_buffer(self.file->data(), self.file->size(), &options, &model);
        }
        return completed < self.stop_at;
    }
};

static void executors_share_the_tensors() {
    checkpoint_t const checkpoint(sizes_t {.depth = 6});
    std::string const file = checkpoint.file();
    model_pointer_t alone;
    CHECK_STATUS(load(file, alone), uform_success_k);
    for (size_t threads : {1, 2, 5}) {
        uform_executor_ram_t executor_options {};
        executor_options.threads = threads;
        uform_model_load_ram_t options {};
        CHECK_STATUS(uform_executor_init_ram(&executor_options, &options.executor), uform_success_k);
        watch_t watch;
        options.progress = watch_t::report;
        options.progress_context = &watch;
        model_pointer_t model;
        CHECK_STATUS(load(file, model, options), uform_success_k);
        CHECK(watch.in_order && watch.calls == checkpoint.tensors.size() && watch.total == watch.calls);
        if (model && alone)
            for (size_t index = 0; index != 6; ++index) {
                packed_t const &one = model->blocks[index].down, &two = alone->blocks[index].down;
                CHECK(!std::memcmp(one.data, two.data, one.padded_rows() * one.padded_columns() * 2));
            }
        // From inside, the executor is taken.
        watch = {};
        watch.file = &file;
        watch.executor = options.executor;
        CHECK_STATUS(load(file, model, options), uform_success_k);
        CHECK(watch.inner == uform_contended_k);
        for (size_t stop : {size_t(1), size_t(2), watch.total / 2, watch.total}) {
            watch = {};
            watch.stop_at = stop;
            refuses(file, uform_cancelled_k, "progress", options);
            CHECK(watch.calls == stop);
        }
        // What fails on another thread is told on this one.
        checkpoint_t broken = checkpoint;
        broken.poke("heads.tokens", 3, NAN);
        options.progress = nullptr;
        refuses(broken.file(), uform_malformed_k, "`heads.tokens`", options);
        uform_executor_free(options.executor);
    }
}

/** Largest resident size of the process so far. */
static size_t peak_bytes() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<size_t>(usage.ru_maxrss) * 1024;
}

static void load_path(char const *path) {
    for (uform_scalar_t quantization : {uform_e4m3_k, uform_bf16_k}) {
        uform_model_load_ram_t options {};
        options.quantization = quantization;
        uform_model_t *model = nullptr;
        size_t const before = peak_bytes();
        CHECK_STATUS(uform_model_load_ram(path, &options, &model), uform_success_k);
        if (!model) return;
        std::printf("%s: %s, %zu bytes, peak rose by %zu\n", path, uform_scalar_name(quantization), model->memory_usage,
                    peak_bytes() - before);
        uform_model_free(model);
    }
}

int main(int argument_count, char **arguments) {
    for (int index = 1; index < argument_count; ++index) load_path(arguments[index]);
    RUN(every_number_comes_to_its_place);
    RUN(packed_elements_lie_where_packed_h_says);
    RUN(e4m3_has_a_scale_a_row);
    RUN(rotary_positions_turn_half_of_the_pairs);
    RUN(a_model_describes_itself);
    RUN(heads_are_optional);
    RUN(media_have_shapes_and_tensors);
    RUN(media_are_refused_by_key);
    RUN(wrong_tensors_are_refused_by_name);
    RUN(other_files_are_refused);
    RUN(every_truncation_is_refused);
    RUN(files_and_buffers_load_alike);
    RUN(what_is_no_file_is_an_io_error);
    RUN(arguments_are_checked);
    RUN(executors_share_the_tensors);
    rmdir(temporary("").c_str());
    return check_report();
}
