#include "config.h"

#include <cinttypes>
#include <string>

#include "../core/failure.h"
#include "json.h"

namespace uform {
namespace {

/** A key that has a whole number, and the range that it may be in. */
struct key_t {
    char const *name;
    size_t config_t::*field;
    uint64_t least;
    uint64_t most;
    bool required;
};

// Generous, and small enough that no product of two of them overflows.
constexpr uint64_t most_width_k = uint64_t(1) << 20;
// Its rotary table is the one thing that a small file can ask much memory for: 64 MiB at the most.
constexpr uint64_t most_context_k = uint64_t(1) << 18;

constexpr key_t keys[] = {
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
constexpr size_t key_count_k = sizeof(keys) / sizeof(keys[0]);

uform_status_t mismatch(char const *key, char const *reason) noexcept {
    return fail(uform_config_mismatch_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%s` %s", key, reason);
}

/** Keys that were read. */
struct seen_t {
    bool keys[key_count_k] = {};
    bool rotary_base = false;
    bool norm_epsilon = false;
    bool trained = false;
    bool media[3] = {};
};

constexpr char const *media_keys[3] = {"image", "video", "audio"};

/** Notes that a key is there, which it may be once. */
bool note(json_reader_t &json, bool &seen) noexcept {
    if (seen) return json.fail("the key stands twice");
    return seen = true;
}

/** The value of a key. False: format 1 has no such key. What is wrong with the value is the reader's failure. */
bool read_member(json_reader_t &json, std::string const &name, config_t &config, seen_t &seen) {
    for (size_t index = 0; index != key_count_k; ++index) {
        if (name != keys[index].name) continue;
        uint64_t value = 0;
        if (note(json, seen.keys[index]) && json.read_count(value)) config.*keys[index].field = value;
        return true;
    }
    for (size_t index = 0; index != 3; ++index) {
        if (name != media_keys[index]) continue;
        // Shapes of other modalities: nothing of theirs is loaded for text.
        if (note(json, seen.media[index])) json.skip_value();
        return true;
    }
    if (name == "rotary_base") note(json, seen.rotary_base) && json.read_number(config.rotary_base);
    else if (name == "norm_epsilon") note(json, seen.norm_epsilon) && json.read_number(config.norm_epsilon);
    else if (name == "trained") {
        // For people: what the weights were trained for.
        std::string ignored;
        if (!note(json, seen.trained) || !json.enter_array()) return true;
        while (json.next_element()) json.read_string(ignored);
    }
    else return false;
    return true;
}

uform_status_t check(config_t const &config, seen_t const &seen) noexcept {
    for (size_t index = 0; index != key_count_k; ++index) {
        key_t const &key = keys[index];
        if (key.required && !seen.keys[index]) return mismatch(key.name, "is missing");
        uint64_t const value = config.*key.field;
        if (value < key.least || value > key.most)
            return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                        "checkpoint: its configuration's `%s` is %" PRIu64 ", which is not from %" PRIu64
                        " to %" PRIu64,
                        key.name, value, key.least, key.most);
    }
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
    return uform_success_k;
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
        else if (!read_member(json, name, config, seen))
            return fail(uform_config_mismatch_k, UFORM_NO_ITEM,
                        "checkpoint: its configuration's `%.64s` is no key of format 1", name.c_str());
        if (json.failed())
            return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: its configuration's `%.64s`: %s", name.c_str(),
                        json.error());
    }
    return check(config, seen);
}

} // namespace uform
