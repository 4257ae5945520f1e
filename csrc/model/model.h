/** A checkpoint in memory, as the forward pass reads it. Immutable once loaded. */
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "uform/model.h"

#include "../kernels/packed.h"

namespace uform {

/** Rows of `embed.modality`. */
enum class modality_t : uint8_t { text_k, image_k, video_k, audio_k };

constexpr size_t modalities_k = 4;

/** How pictures become tokens; `patch_side` 0: the model takes none. */
struct image_config_t {
    size_t patch_side = 0;
    size_t max_patches = 0;

    /** Numbers of a patch: [row, column, channel]. */
    size_t patch_width() const noexcept { return 3 * patch_side * patch_side; }
};

/** How videos become tokens; `patch_side` 0: the model takes none. */
struct video_config_t {
    size_t patch_side = 0;
    size_t max_patches = 0; /**< Of a frame. */
    size_t frames = 0;      /**< Of a tubelet. */
    size_t max_frames = 0;
    double frame_rate = 0; /**< Hz */

    /** Numbers of a tubelet: [frame, row, column, channel]. */
    size_t patch_width() const noexcept { return frames * 3 * patch_side * patch_side; }
};

/** How recordings become tokens; `frames_per_token` 0: the model takes none. */
struct audio_config_t {
    size_t sample_rate = 0;
    size_t mel_bins = 0;
    size_t frames_per_token = 0;

    /** Numbers of a token: [frame, bin]. */
    size_t patch_width() const noexcept { return frames_per_token * mel_bins; }
};

/** Numbers of the configuration, named as in the checkpoint; see FORMAT.md. */
struct config_t {
    size_t depth = 0;
    size_t hidden = 0;
    size_t head_dimension = 0;
    size_t width = 0;
    size_t dimensions = 0;
    size_t context = 0;
    size_t token_width = 0;
    size_t choice_temperature_groups = 0;
    double rotary_base = 10000.0;
    double norm_epsilon = 1e-6;
    size_t local_window = 0;
    size_t global_every = 0;
    image_config_t image;
    video_config_t video;
    audio_config_t audio;
    unsigned trained = 0; /**< A set of `uform_modality_t`. */

    /** A set of `uform_modality_t`. */
    unsigned modalities() const noexcept {
        return uform_text_k | (image.patch_side ? uform_image_k : 0) | (video.patch_side ? uform_video_k : 0) |
               (audio.frames_per_token ? uform_audio_k : 0);
    }
    /** Rows or columns that a picture or frame may have at the most. */
    size_t grid_side() const noexcept { return std::max(image.max_patches, video.max_patches); }

    size_t heads() const noexcept { return hidden / head_dimension; }
    /** Of queries, so that attention's softmax is one of powers of two of queries times keys. */
    double query_factor() const noexcept {
        constexpr double log2_of_e = 1.4426950408889634;
        return log2_of_e / std::sqrt(static_cast<double>(head_dimension));
    }
    /** Tokens a block attends each way; 0: all. */
    size_t window(size_t block) const noexcept {
        return local_window && !(global_every && block % global_every == global_every - 1) ? local_window : 0;
    }
};

/** Weights of a block. Gains are F32, `[columns]`. */
struct block_t {
    float const *attention_norm = nullptr;
    packed_t qkv;                      /**< [3 * hidden, hidden]: query rows, key rows, value rows. */
    float const *query_norm = nullptr; /**< [head_dimension] */
    float const *key_norm = nullptr;   /**< [head_dimension] */
    bool bounded = false;              /**< Attention's scores are, whatever the input: see attention.h. */
    packed_t output;                   /**< [hidden, hidden] */
    float const *mlp_norm = nullptr;
    packed_t gate_up; /**< [2 * width, hidden], 16 gate rows and the 16 up rows of the same units by turns. */
    packed_t down;    /**< [hidden, width] */
};

} // namespace uform

/** What the C ABI's handle points to. All pointers lead into `memory`. */
struct uform_model_t {
    uform::config_t config;
    uform_scalar_t quantization = uform_bf16_k;
    uform_cpu_class_t cpu_class = uform_cpu_class_default_k;
    bool cpu_class_pinned = false;
    size_t parameters = 0;
    size_t memory_usage = 0;

    float const *text_embeddings = nullptr; /**< [257, hidden]: byte rows plus the row of the text modality. */
    uform::packed_t patch_embeddings[uform::modalities_k]; /**< [hidden, patch width] of the media that it takes. */
    float const *modality_rows = nullptr;                  /**< [modalities, hidden] */
    std::vector<uform::block_t> blocks;
    float const *final_norm = nullptr;
    uform::packed_t embedding_head;
    uform::packed_t token_head;                  /**< Empty without one. */
    uform::packed_t byte_head;                   /**< Empty without one. */
    float const *inverse_temperatures = nullptr; /**< [choice_temperature_groups] */
    /**
     *  [context, 2, head_dimension / 2]: cosines, then sines, of a text token's pairs at each position. The first half
     *  of the pairs rotates by time; the others have cosine 1 and sine 0.
     */
    float const *rotary = nullptr;
    /** [grid side, 2, head_dimension / 8]: the same of the pairs that rotate by a row, or by a column. */
    float const *rotary_grid = nullptr;

    struct memory_deleter_t {
        void operator()(std::byte *pointer) const noexcept;
    };
    std::unique_ptr<std::byte, memory_deleter_t> memory;
};
