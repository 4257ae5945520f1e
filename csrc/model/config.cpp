#include "config.h"

#include <cinttypes>
#include <iterator>
#include <string>
#include <string_view>

#include "../core/failure.h"
#include "../media/mel.h"
#include "json.h"

namespace uform {
namespace {

/** A key that has a whole number, and the range that it may be in. */
template <typename section_type_> struct key_t {
    char const *name;
    size_t section_type_::*field;
    uint64_t least;
    uint64_t most;
    bool required;
};

// Generous, and small enough that no product of two of them overflows.
constexpr uint64_t most_width_k = uint64_t(1) << 20;
// Its rotary table is the one thing that a small file can ask much memory for: 64 MiB at the most.
constexpr uint64_t most_context_k = uint64_t(1) << 18;

constexpr key_t<config_t> keys[] = {
    {"depth", &config_t::depth, 1, 1024, true},
    {"hidden", &config_t::hidden, 32, most_width_k, true},
    {"head_dimension", &config_t::head_dimension, 32, 64, true},
    {"width", &config_t::width, 64, most_width_k, true},
    {"dimensions", &config_t::dimensions, 1, most_width_k, true},
    {"context", &config_t::context, 2, most_context_k, true},
    {"token_width", &config_t::token_width, 0, most_width_k, false},
    {"choice_temperature_groups", &config_t::choice_temperature_groups, 0, 65536, false},
    {"local_window", &config_t::local_window, 0, most_width_k, false},
    {"global_every", &config_t::global_every, 0, 1024, false},
};
constexpr size_t key_count_k = std::size(keys);

// Patches of 128 pixels are more than any model's; a product of these and a context fits easily.
constexpr uint64_t most_side_k = 128, most_frames_k = 65536;

constexpr key_t<image_config_t> image_keys[] = {
    {"patch_side", &image_config_t::patch_side, 1, most_side_k, true},
    {"max_patches", &image_config_t::max_patches, 1, most_context_k, true},
};
constexpr key_t<video_config_t> video_keys[] = {
    {"patch_side", &video_config_t::patch_side, 1, most_side_k, true},
    {"max_patches", &video_config_t::max_patches, 1, most_context_k, true},
    {"frames", &video_config_t::frames, 1, 16, true},
    {"max_frames", &video_config_t::max_frames, 1, most_frames_k, true},
};
// The front end of format 1 is one: see media/mel.h.
constexpr key_t<audio_config_t> audio_keys[] = {
    {"sample_rate", &audio_config_t::sample_rate, mel_sample_rate_k, mel_sample_rate_k, true},
    {"mel_bins", &audio_config_t::mel_bins, mel_bins_k, mel_bins_k, true},
    {"frames_per_token", &audio_config_t::frames_per_token, 1, 64, true},
};

uform_status_t mismatch(char const *key, char const *reason) noexcept {
    return fail(uform_config_mismatch_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%s` %s", key, reason);
}

/** Keys that were read. */
struct seen_t {
    bool keys[key_count_k] = {};
    bool rotary_base = false;
    bool norm_epsilon = false;
    bool trained = false;
    bool image = false;
    bool video = false;
    bool audio = false;
};

/** Notes that a key is there, which it may be once. */
bool note(json_reader_t &json, bool &seen) noexcept {
    if (seen) return json.fail("the key stands twice");
    return seen = true;
}

/** Whether a key is missing or out of its range; `section` has a dot at its end. */
template <typename section_type_>
uform_status_t check_key(key_t<section_type_> const &key, section_type_ const &section, bool seen,
                         char const *name) noexcept {
    if (key.required && !seen)
        return fail(uform_config_mismatch_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%s%s` is missing", name,
                    key.name);
    uint64_t const value = section.*key.field;
    if (value >= key.least && value <= key.most) return uform_success_k;
    return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                "checkpoint: its configuration's `%s%s` is %" PRIu64 ", which is not from %" PRIu64 " to %" PRIu64,
                name, key.name, value, key.least, key.most);
}

/** Reads an object of whole numbers, and of `extra`, a number of any kind. A failure is noted. */
template <typename section_type_, size_t count_>
uform_status_t read_section(json_reader_t &json, char const *name, key_t<section_type_> const (&keys)[count_],
                            section_type_ &section, char const *extra = nullptr, double *extra_value = nullptr) {
    bool seen[count_] = {}, extra_seen = false;
    std::string key;
    json.enter_object();
    while (json.next_member(key)) {
        size_t index = 0;
        while (index != count_ && key != keys[index].name) ++index;
        uint64_t value = 0;
        if (index != count_) {
            if (note(json, seen[index]) && json.read_count(value)) section.*keys[index].field = value;
        }
        else if (extra && key == extra) note(json, extra_seen) && json.read_number(*extra_value);
        else
            return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                        "checkpoint: its configuration's `%s%.64s` is no key of format 1", name, key.c_str());
    }
    if (json.failed()) return uform_success_k; // The caller tells of it.
    for (size_t index = 0; index != count_; ++index)
        if (uform_status_t const status = check_key(keys[index], section, seen[index], name)) return status;
    if (extra && !extra_seen)
        return fail(uform_config_mismatch_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%s%s` is missing", name,
                    extra);
    return uform_success_k;
}

/** What the weights were trained on; words that no modality has are for people. */
void read_trained(json_reader_t &json, unsigned &trained) {
    constexpr std::string_view names[modalities_k] = {"text", "image", "video", "audio"};
    std::string name;
    if (!json.enter_array()) return;
    while (json.next_element()) {
        json.read_string(name);
        for (size_t index = 0; index != modalities_k; ++index)
            if (name == names[index]) trained |= 1u << index;
    }
}

/** The value of a key. What is wrong with its JSON is the reader's failure; all else is noted. */
uform_status_t read_member(json_reader_t &json, std::string const &name, config_t &config, seen_t &seen) {
    for (size_t index = 0; index != key_count_k; ++index) {
        if (name != keys[index].name) continue;
        uint64_t value = 0;
        if (note(json, seen.keys[index]) && json.read_count(value)) config.*keys[index].field = value;
        return uform_success_k;
    }
    if (name == "image") {
        if (!note(json, seen.image)) return uform_success_k;
        return read_section(json, "image.", image_keys, config.image);
    }
    if (name == "video") {
        if (!note(json, seen.video)) return uform_success_k;
        return read_section(json, "video.", video_keys, config.video, "frame_rate", &config.video.frame_rate);
    }
    if (name == "audio") {
        if (!note(json, seen.audio)) return uform_success_k;
        return read_section(json, "audio.", audio_keys, config.audio);
    }
    if (name == "rotary_base") note(json, seen.rotary_base) && json.read_number(config.rotary_base);
    else if (name == "norm_epsilon") note(json, seen.norm_epsilon) && json.read_number(config.norm_epsilon);
    else if (name == "trained") note(json, seen.trained) && (read_trained(json, config.trained), true);
    else
        return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                    "checkpoint: its configuration's `%.64s` is no key of format 1", name.c_str());
    return uform_success_k;
}

/** A picture, and the first frames of a video, fit the context. */
uform_status_t check_media(config_t const &config, seen_t const &seen) noexcept {
    if (config.image.max_patches > config.context) return mismatch("image.max_patches", "is above `context`");
    if (config.video.max_patches > config.context) return mismatch("video.max_patches", "is above `context`");
    if (seen.video && !(config.video.frame_rate >= 0.001 && config.video.frame_rate <= 1000))
        return mismatch("video.frame_rate", "is not from 0.001 to 1000");
    return uform_success_k;
}

uform_status_t check(config_t const &config, seen_t const &seen) noexcept {
    for (size_t index = 0; index != key_count_k; ++index)
        if (uform_status_t const status = check_key(keys[index], config, seen.keys[index], "")) return status;
    if (config.head_dimension != 32 && config.head_dimension != 64)
        return mismatch("head_dimension", "is neither 32 nor 64");
    if (config.hidden % config.head_dimension) return mismatch("hidden", "is no multiple of `head_dimension`");
    if (config.width % 64) return mismatch("width", "is no multiple of 64");
    if (config.global_every && !config.local_window) return mismatch("global_every", "needs a `local_window`");
    // Comparisons are false for NaN.
    if (!(config.rotary_base >= 1 && config.rotary_base <= 1e12))
        return mismatch("rotary_base", "is not from 1 to 1e12");
    if (!(config.norm_epsilon > 0 && config.norm_epsilon <= 1))
        return mismatch("norm_epsilon", "is not above 0 and up to 1");
    return check_media(config, seen);
}

/**
 *  Looks for the format's number first: another format may have other keys, and that it is another one says more than
 *  that a key is unknown.
 */
uform_status_t check_format(std::string_view text) {
    json_reader_t json(text);
    std::string name;
    uint64_t format = 0;
    bool has_format = false;
    json.enter_object();
    while (json.next_member(name)) {
        if (name != "format") json.skip_value();
        else if (note(json, has_format)) json.read_count(format);
    }
    if (!json.finish())
        return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: at byte %zu of its configuration: %s",
                    json.position(), json.error());
    if (!has_format) return mismatch("format", "is missing");
    if (format != 1)
        return fail(uform_unsupported_k, UFORM_NO_ITEM,
                    "checkpoint: its format is %" PRIu64 ", and this version of UForm reads format 1", format);
    return uform_success_k;
}

} // namespace

uform_status_t read_config(std::string_view text, config_t &config) {
    if (uform_status_t const status = check_format(text)) return status;
    config = {};
    json_reader_t json(text);
    seen_t seen;
    std::string name;
    uint64_t format = 0;
    json.enter_object();
    while (json.next_member(name)) {
        if (name == "format") json.read_count(format);
        else if (uform_status_t const status = read_member(json, name, config, seen)) return status;
        if (json.failed())
            return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%.64s`: %s", name.c_str(),
                        json.error());
    }
    return check(config, seen);
}

} // namespace uform
