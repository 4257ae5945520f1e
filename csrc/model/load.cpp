#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <set>
#include <string>
#include <string_view>

#include "uform/model.h"

#include "../core/cpu_class.h"
#include "../core/executor.h"
#include "../core/failure.h"
#include "../core/kind.h"
#include "../core/memory.h"
#include "../core/serial_team.h"
#include "config.h"
#include "weights.h"
#include "workspace.h"

namespace uform {
namespace {

constexpr size_t byte_rows_k = 257;

/** Lists the tensors of a model and lays out their memory; over a counting carver it only measures. */
class layout_builder_t {
  public:
    layout_builder_t(uform_model_t &model, carver_t &carver, std::vector<piece_t> &pieces)
        : model_(model), carver_(carver), pieces_(pieces) {}

    void build() {
        config_t const &config = model_.config;
        size_t const hidden = config.hidden;
        // The modality's row is added to the bytes' ones, so it comes first.
        model_.modality_rows = take({.name = "embed.modality", .rows = modalities_k, .columns = hidden});
        model_.text_embeddings =
            take({.name = "embed.bytes", .rows = byte_rows_k, .columns = hidden, .placement = placement_t::embeds_k});
        model_.blocks.assign(config.depth, {});
        for (size_t index = 0; index != config.depth; ++index) {
            block_t &block = model_.blocks[index];
            std::string const prefix = "blocks." + std::to_string(index) + ".";
            block.attention_norm = gain(prefix + "attention.norm", hidden);
            block.qkv = matrix(prefix + "attention.qkv", 3 * hidden, hidden, true);
            block.query_norm = gain(prefix + "attention.query_norm", config.head_dimension);
            block.key_norm = gain(prefix + "attention.key_norm", config.head_dimension);
            block.output = matrix(prefix + "attention.output", hidden, hidden, true);
            block.mlp_norm = gain(prefix + "mlp.norm", hidden);
            block.gate_up = matrix(prefix + "mlp.gate_up", 2 * config.width, hidden, true, placement_t::gated_k);
            block.down = matrix(prefix + "mlp.down", hidden, config.width, true);
        }
        model_.final_norm = gain("final.norm", hidden);
        model_.embedding_head = matrix("heads.embedding", config.dimensions, hidden, false);
        if (config.token_width) model_.token_head = matrix("heads.tokens", config.token_width, hidden, false);
        if (config.choice_temperature_groups) {
            model_.byte_head = matrix("heads.bytes", 256, hidden, false);
            model_.inverse_temperatures = take({.name = "heads.inverse_temperatures",
                                                .scalar = "F32",
                                                .columns = config.choice_temperature_groups,
                                                .is_vector = true});
        }
        patches(modality_t::image_k, "embed.image", config.image.patch_side ? config.image.patch_width() : 0);
        patches(modality_t::video_k, "embed.video", config.video.patch_side ? config.video.patch_width() : 0);
        patches(modality_t::audio_k, "embed.audio", config.audio.patch_width());
        model_.rotary = rotary = carver_.take<float>(config.context * config.head_dimension);
        model_.rotary_grid = rotary_grid = carver_.take<float>(config.grid_side() * config.head_dimension / 4);
    }

    float *rotary = nullptr;
    float *rotary_grid = nullptr;

  private:
    float const *take(piece_t piece) {
        piece.plain = carver_.take<float>(piece.rows * piece.columns);
        pieces_.push_back(piece);
        return piece.plain;
    }

    void patches(modality_t modality, char const *name, size_t width) {
        if (width) model_.patch_embeddings[size_t(modality)] = matrix(name, model_.config.hidden, width, false);
    }

    float const *gain(std::string name, size_t columns) {
        return take({.name = std::move(name), .columns = columns, .is_vector = true});
    }

    packed_t matrix(std::string name, size_t rows, size_t columns, bool is_big,
                    placement_t placement = placement_t::packed_k) {
        packed_t packed;
        packed.rows = rows;
        packed.columns = columns;
        piece_t piece {.name = std::move(name), .rows = rows, .columns = columns, .placement = placement};
        size_t const elements = packed.padded_rows() * packed.padded_columns();
        if (is_big && model_.quantization == uform_e4m3_k) {
            packed.data_e4m3 = piece.data_e4m3 = carver_.take<e4m3_t>(elements);
            packed.scales = piece.scales = carver_.take<float>(packed.padded_rows());
        }
        else packed.data = piece.data = carver_.take<bf16_t>(elements);
        pieces_.push_back(std::move(piece));
        return packed;
    }

    uform_model_t &model_;
    carver_t &carver_;
    std::vector<piece_t> &pieces_;
};

std::string shape_text(std::vector<uint64_t> const &shape) {
    std::string text = "[";
    for (uint64_t extent : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(extent);
    return text + "]";
}

/** Every tensor that the model needs is there, as it needs it, and no other. */
uform_status_t check_tensors(safetensors_t const &header, std::vector<piece_t> const &pieces) {
    std::set<std::string_view> known;
    for (piece_t const &piece : pieces) {
        known.insert(piece.name);
        auto const found = header.tensors.find(piece.name);
        if (found == header.tensors.end())
            return fail(uform_shape_mismatch_k, UFORM_NO_ITEM, "checkpoint: tensor `%s` is missing",
                        piece.name.c_str());
        tensor_t const &tensor = found->second;
        std::vector<uint64_t> shape {piece.rows, piece.columns};
        if (piece.is_vector) shape.erase(shape.begin());
        if (tensor.shape != shape)
            return fail(uform_shape_mismatch_k, UFORM_NO_ITEM, "checkpoint: tensor `%s` has the shape %.100s, not %s",
                        piece.name.c_str(), shape_text(tensor.shape).c_str(), shape_text(shape).c_str());
        if (tensor.scalar != piece.scalar)
            return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "checkpoint: tensor `%s` has the scalar %.32s, not %s",
                        piece.name.c_str(), tensor.scalar.c_str(), piece.scalar);
    }
    for (auto const &[name, tensor] : header.tensors)
        if (!known.contains(name))
            return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                        "checkpoint: its configuration has no part that tensor `%.100s` belongs to", name.c_str());
    return uform_success_k;
}

/** Cosines and sines of `timed` pairs of `pairs`, at each position; the others do not turn: see FORMAT.md. */
void fill_rotary(double base, size_t positions, size_t pairs, size_t timed, float *rotary) noexcept {
    for (size_t pair = 0; pair != pairs; ++pair) {
        double const step =
            pair < timed ? std::pow(base, -static_cast<double>(pair) / static_cast<double>(timed)) : 0.0;
        float *out = rotary + pair;
        for (size_t position = 0; position != positions; ++position, out += 2 * pairs) {
            double const angle = static_cast<double>(position) * step;
            out[0] = static_cast<float>(std::cos(angle));
            out[pairs] = static_cast<float>(std::sin(angle));
        }
    }
}

/**
 *  Whether the gains of a block's norms keep its scores small. A normed head is no longer than sqrt(head_dimension)
 *  times its largest gain, rotation leaves it so, and a score is at most the product of the lengths of a query and a
 *  key, and of the query's factor; two roundings to BF16 add less than a hundredth.
 */
bool has_bounded_scores(block_t const &block, config_t const &config) noexcept {
    size_t const dimension = config.head_dimension;
    auto const largest = [&](float const *gain) {
        double largest = 0;
        for (size_t index = 0; index != dimension; ++index) largest = std::max(largest, std::fabs(double(gain[index])));
        return largest;
    };
    double const longest = largest(block.query_norm) * largest(block.key_norm) * double(dimension);
    return 1.01 * longest * config.query_factor() <= attention_bound_k;
}

/** Below zero the least likely choice would win, at zero all would be alike. */
uform_status_t check_temperatures(uform_model_t const &model) noexcept {
    for (size_t group = 0; group != model.config.choice_temperature_groups; ++group)
        if (!(model.inverse_temperatures[group] > 0))
            return fail(uform_malformed_k, UFORM_NO_ITEM,
                        "checkpoint: tensor `heads.inverse_temperatures` has a number that is not above 0");
    return uform_success_k;
}

/** Loads the pieces on a team's threads. */
class loading_t {
  public:
    loading_t(source_t const &source, safetensors_t const &header, std::vector<piece_t> const &pieces,
              uform_model_load_ram_t const &options, float const *modality) noexcept
        : source_(source), header_(header), pieces_(pieces), options_(options), modality_(modality) {}

    uform_status_t run(team_t &team) noexcept {
        size_t bytes = 0;
        for (piece_t const &piece : pieces_) bytes = std::max(bytes, piece_scratch(piece));
        for (size_t slot = 0; slot != team.threads(); ++slot)
            if (!team.scratch(slot, bytes))
                return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "checkpoint: no memory to load it");
        // The first piece is the modality's row, which the second one needs.
        load(0, team.scratch(0, bytes));
        team.run_each([&](size_t slot) noexcept {
            for (size_t index; !stopped_ && (index = next_++) < pieces_.size();) load(index, team.scratch(slot, bytes));
        });
        if (failure_.status == uform_success_k) return uform_success_k;
        return fail(failure_.status, failure_.item, "%s", failure_.message);
    }

  private:
    void load(size_t index, std::byte *scratch) noexcept {
        uform_status_t const status =
            load_piece(source_, header_.tensors.find(pieces_[index].name)->second, pieces_[index], modality_, scratch);
        std::lock_guard<std::mutex> lock(mutex_);
        if (stopped_) return;
        if (status) {
            failure_ = last_failure();
            stopped_ = true;
        }
        else if (options_.progress && !options_.progress(options_.progress_context, ++completed_, pieces_.size())) {
            fail(uform_cancelled_k, UFORM_NO_ITEM, "progress: the handler stopped the call");
            failure_ = last_failure();
            stopped_ = true;
        }
    }

    source_t const &source_;
    safetensors_t const &header_;
    std::vector<piece_t> const &pieces_;
    uform_model_load_ram_t const &options_;
    float const *modality_;
    std::mutex mutex_;
    uform_failure_t failure_ {uform_success_k, UFORM_NO_ITEM, {}};
    size_t completed_ = 0;
    std::atomic<bool> stopped_ {false};
    std::atomic<size_t> next_ {1};
};

uform_status_t load(source_t const &source, uform_model_load_ram_t const &options, team_t &team, uform_model_t &model) {
    safetensors_t header;
    if (uform_status_t const status = read_safetensors(source, header)) return status;
    auto const found = header.metadata.find("uform");
    if (found == header.metadata.end())
        return fail(uform_malformed_k, UFORM_NO_ITEM,
                    "checkpoint: it is none of UForm's: its metadata has no `uform` key");
    if (uform_status_t const status = read_config(found->second, model.config)) return status;

    std::vector<piece_t> pieces;
    carver_t measured(nullptr);
    layout_builder_t(model, measured, pieces).build();
    // Before memory is asked for: a small file can describe a huge model.
    if (uform_status_t const status = check_tensors(header, pieces)) return status;
    model.memory.reset(allocate_memory(measured.used()));
    if (!model.memory)
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "checkpoint: no memory for its %zu bytes", measured.used());
    model.memory_usage = measured.used();

    pieces.clear();
    carver_t carver(model.memory.get());
    layout_builder_t builder(model, carver, pieces);
    builder.build();
    config_t const &config = model.config;
    size_t const pairs = config.head_dimension / 2;
    fill_rotary(config.rotary_base, config.context, pairs, pairs / 2, builder.rotary);
    fill_rotary(config.rotary_base, config.grid_side(), pairs / 4, pairs / 4, builder.rotary_grid);
    for (piece_t const &piece : pieces) model.parameters += piece.rows * piece.columns;
    if (uform_status_t const status = loading_t(source, header, pieces, options, model.modality_rows).run(team))
        return status;
    for (block_t &block : model.blocks) block.bounded = has_bounded_scores(block, config);
    return check_temperatures(model);
}

uform_status_t load_checked(source_t const &source, uform_model_load_ram_t const *options,
                            uform_model_t **model) noexcept {
    uform_model_load_ram_t const defaults {};
    if (!options) options = &defaults;
    try {
        auto made = std::make_unique<uform_model_t>();
        int const quantization = number_of(options->quantization);
        if (quantization != uform_scalar_default_k && !uform_scalar_name(quantization))
            return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "quantization: %d is no scalar", quantization);
        if (quantization == uform_f32_k)
            return fail(uform_unsupported_k, UFORM_NO_ITEM, "quantization: weights are BF16 or E4M3, not F32");
        if (quantization == uform_e4m3_k) made->quantization = uform_e4m3_k;
        if (uform_status_t const status = check_cpu_class(options->cpu_class)) return status;
        made->cpu_class_pinned = options->cpu_class != uform_cpu_class_default_k;
        made->cpu_class = made->cpu_class_pinned ? options->cpu_class : uform_cpu_class_derive();
        executor_hold_t hold;
        serial_team_t serial;
        if (options->executor)
            if (uform_status_t const status = hold.acquire(*options->executor, false)) return status;
        team_t &team = options->executor ? hold.team() : serial;
        if (uform_status_t const status = load(source, *options, team, *made)) return status;
        *model = made.release();
        return uform_success_k;
    }
    catch (std::bad_alloc const &) {
        return fail(uform_out_of_memory_k, UFORM_NO_ITEM, "checkpoint: no memory to load it");
    }
}

} // namespace
} // namespace uform

void uform_model_t::memory_deleter_t::operator()(std::byte *pointer) const noexcept { uform::free_memory(pointer); }

uform_status_t uform_model_load_ram(char const *path, uform_model_load_ram_t const *options, uform_model_t **model) {
    using namespace uform;
    if (!path) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "path: must not be NULL");
    if (!model) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "model: must not be NULL");
    source_t source;
    if (uform_status_t const status = source.open(path)) return status;
    return load_checked(source, options, model);
}

uform_status_t uform_model_load_ram_buffer(void const *data, size_t length, uform_model_load_ram_t const *options,
                                           uform_model_t **model) {
    using namespace uform;
    if (!data && length)
        return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "data: NULL, but its length is %zu", length);
    if (!model) return fail(uform_invalid_argument_k, UFORM_NO_ITEM, "model: must not be NULL");
    source_t const source(data, length);
    return load_checked(source, options, model);
}

void uform_model_describe(uform_model_t const *model, uform_model_description_t *description) {
    uform::config_t const &config = model->config;
    *description = {};
    description->dimensions = config.dimensions;
    description->context = config.context;
    description->quantization = model->quantization;
    description->memory_usage = model->memory_usage;
    description->cpu_class = model->cpu_class;
    description->cpu_class_pinned = model->cpu_class_pinned;
    description->token_width = config.token_width;
    description->choice_temperature_groups = config.choice_temperature_groups;
    description->depth = config.depth;
    description->hidden = config.hidden;
    description->head_dimension = config.head_dimension;
    description->parameters = model->parameters;
    description->modalities = config.modalities();
    description->trained_modalities = config.trained;
}

void uform_model_free(uform_model_t *model) { delete model; }
