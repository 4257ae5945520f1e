/** What the readers of JSON, of safetensors headers and of configurations take, and what they refuse and how. */
#include <cstdio>
#include <cstring>
#include <string>

#include "check.h"
#include "checkpoint.h"
#include "core/failure.h"
#include "model/config.h"
#include "model/json.h"
#include "model/safetensors.h"

using namespace uform;

static uform_status_t read(std::string const &file, safetensors_t &header) {
    // A copy of just the size: a sanitizer sees what is read past its end.
    std::vector<char> const exact(file.begin(), file.end());
    return read_safetensors(source_t(exact.data(), exact.size()), header);
}

/** Checks a refusal: its status, and that the message says what is wrong. */
static void refuses(char const *what, uform_status_t got, uform_status_t expected, char const *message) {
    if (got == expected && std::strstr(last_failure().message, message)) return;
    ++check_faults;
    std::fprintf(stderr, "%s: %s (%s), not %s (%s)\n", what, uform_status_name(got), last_failure().message,
                 uform_status_name(expected), message);
}

static void a_header_is_read() {
    safetensors_t header;
    std::string const text = "{ \"b\" : {\"shape\":[2,3], \"dtype\":\"BF16\",\"data_offsets\":[4,16]},\n"
                             "\"\\u00e4\\ud83d\\ude00\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]},"
                             "\"none\":{\"dtype\":\"I64\",\"shape\":[0,18446744073709551615],\"data_offsets\":[4,4]},"
                             "\"__metadata__\":{\"uform\":\"{\\\"a\\\":1}\",\"\":\"\"}}    ";
    CHECK_STATUS(read(safetensors_file(text, std::string(16, 'x')), header), uform_success_k);
    CHECK(header.tensors.size() == 3 && header.metadata.size() == 2);
    CHECK(header.metadata.at("uform") == "{\"a\":1}" && header.metadata.at("").empty());
    tensor_t const &matrix = header.tensors.at("b"), &number = header.tensors.at("\u00e4\U0001F600");
    CHECK(matrix.scalar == "BF16" && matrix.shape == (std::vector<uint64_t> {2, 3}));
    CHECK(matrix.begin == 8 + text.size() + 4 && matrix.end == 8 + text.size() + 16);
    CHECK(number.shape.empty() && number.begin == 8 + text.size() && number.end == number.begin + 4);
    safetensors_t empty;
    CHECK_STATUS(read(safetensors_file("{}", ""), empty), uform_success_k);
    CHECK(empty.tensors.empty() && empty.metadata.empty());
}

#define TENSOR(name, scalar, shape, offsets)                                                                           \
    "\"" name "\":{\"dtype\":\"" scalar "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"

static void hostile_headers_are_refused() {
    std::string const deep(100000, '['), deep_objects = [] {
        std::string text;
        for (int i = 0; i != 100000; ++i) text += "{\"a\":";
        return text;
    }();
    struct {
        char const *what;
        std::string header;
        size_t data;
        char const *message;
        uform_status_t status = uform_malformed_k;
    } const files[] = {
        {"no header", "", 0, "no JSON object"},
        {"white space first", " {}", 0, "no JSON object"},
        {"an array", "[]", 0, "no JSON object"},
        {"no JSON", "{nonsense}", 0, "byte 1 of the header: a string is expected"},
        {"no end", "{", 0, "byte 1"},
        {"an end too many", "{}}", 0, "something follows"},
        {"something after the end", "{} {}", 0, "something follows"},
        {"NUL after the end", std::string("{}\0", 3), 0, "something follows"},
        {"a comma at the end", "{" TENSOR("a", "U8", "[1]", "[0,1]") ",}", 1, "a string is expected"},
        {"no comma", "{" TENSOR("a", "U8", "[0]", "[0,0]") TENSOR("b", "U8", "[0]", "[0,0]") "}", 0, "a comma"},
        {"no colon", "{\"a\" {}}", 0, "a colon"},
        {"brackets crossed", "{\"a\":{\"shape\":[1}]}", 0, "a comma or a closing bracket"},
        {"deep arrays", "{\"a\":" + deep, 0, "an object is expected"},
        {"deep objects", deep_objects, 0, "unknown"},
        {"deep metadata", "{\"__metadata__\":{\"a\":" + deep + "}}", 0, "a string is expected"},
        {"a control character", "{\"a\n\":{}}", 0, "control character"},
        {"an unknown escape", "{\"\\x41\":{}}", 0, "escape"},
        {"an escape cut short", "{\"\\u00", 0, "cut short"},
        {"an escape of no digits", "{\"\\u00g0\":{}}", 0, "hexadecimal"},
        {"an escape with a sign", "{\"\\u-001\":{}}", 0, "hexadecimal"},
        {"a lone high surrogate", "{\"\\ud800\":{}}", 0, "surrogate"},
        {"a lone low surrogate", "{\"\\udc00\":{}}", 0, "surrogate"},
        {"two high surrogates", "{\"\\ud800\\ud800\":{}}", 0, "surrogate"},
        {"a string without an end", "{\"abc", 0, "does not end"},
        {"a backslash at the end", "{\"abc\\", 0, "does not end"},
        {"a byte that is no UTF-8", "{\"\xff\":{}}", 0, "UTF-8"},
        {"an overlong form", "{\"\xc0\x80\":{}}", 0, "UTF-8"},
        {"an overlong form of three", "{\"\xe0\x80\x80\":{}}", 0, "UTF-8"},
        {"an overlong form of four", "{\"\xf0\x80\x80\x80\":{}}", 0, "UTF-8"},
        {"a surrogate in UTF-8", "{\"\xed\xa0\x80\":{}}", 0, "UTF-8"},
        {"past the last code point", "{\"\xf4\x90\x80\x80\":{}}", 0, "UTF-8"},
        {"UTF-8 cut short", "{\"\xe2\x82\":{}}", 0, "UTF-8"},
        {"a tensor that is a number", "{\"a\":1}", 0, "an object is expected"},
        {"a tensor that is null", "{\"a\":null}", 0, "an object is expected"},
        {"a tensor twice", "{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, "twice"},
        {"a tensor twice, escaped",
         "{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("\\u0061", "U8", "[1]", "[1,2]") "}", 2, "twice"},
        {"a scalar twice", "{\"a\":{\"dtype\":\"U8\",\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1]}}", 1,
         "twice"},
        {"an unknown member", "{\"a\":{\"dtype\":\"U8\",\"shape\":[],\"data_offsets\":[0,1],\"x\":1}}", 1, "unknown"},
        {"no scalar", "{\"a\":{\"shape\":[],\"data_offsets\":[0,1]}}", 1, "lacks"},
        {"no shape", "{\"a\":{\"dtype\":\"U8\",\"data_offsets\":[0,1]}}", 1, "lacks"},
        {"no offsets", "{\"a\":{\"dtype\":\"U8\",\"shape\":[]}}", 1, "lacks"},
        {"metadata twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "twice"},
        {"a key of metadata twice", "{\"__metadata__\":{\"a\":\"\",\"a\":\"\"}}", 0, "twice"},
        {"metadata that is a number", "{\"__metadata__\":{\"a\":1}}", 0, "a string is expected"},
        {"metadata that is a string", "{\"__metadata__\":\"a\"}", 0, "an object is expected"},
        {"a scalar that is a number", "{\"a\":{\"dtype\":1}}", 0, "a string is expected"},
        {"a negative extent", "{" TENSOR("a", "U8", "[-1]", "[0,1]") "}", 1, "not negative"},
        {"a fraction", "{" TENSOR("a", "U8", "[1.0]", "[0,1]") "}", 1, "whole number"},
        {"an exponent", "{" TENSOR("a", "U8", "[1e0]", "[0,1]") "}", 1, "whole number"},
        {"a leading zero", "{" TENSOR("a", "U8", "[01]", "[0,1]") "}", 1, "a comma"},
        {"an extent past 64 bits", "{" TENSOR("a", "U8", "[18446744073709551616]", "[0,1]") "}", 1, "too large"},
        {"nine dimensions", "{" TENSOR("a", "U8", "[1,1,1,1,1,1,1,1,1]", "[0,1]") "}", 1, "more than 8"},
        {"one offset", "{" TENSOR("a", "U8", "[1]", "[0]") "}", 1, "pair"},
        {"three offsets", "{" TENSOR("a", "U8", "[1]", "[0,1,2]") "}", 1, "pair"},
        {"an unknown scalar", "{" TENSOR("weights", "F13", "[1]", "[0,1]") "}", 1,
         "`weights` has the unknown scalar F13", uform_unknown_kind_k},
        {"a shape that overflows", "{" TENSOR("a", "U8", "[4294967296,4294967296]", "[0,0]") "}", 0,
         "`a`: its shape overflows"},
        {"a shape that overflows by its scalar", "{" TENSOR("a", "F64", "[2305843009213693952]", "[0,0]") "}", 0,
         "its shape overflows"},
        {"fewer bytes than the shape", "{" TENSOR("a", "F32", "[2]", "[0,7]") "}", 7,
         "`a`: its data_offsets do not fit"},
        {"more bytes than the shape", "{" TENSOR("a", "F32", "[2]", "[0,9]") "}", 9, "do not fit"},
        {"bytes of no scalar", "{" TENSOR("a", "F32", "[]", "[0,0]") "}", 0, "do not fit"},
        {"offsets that decrease", "{" TENSOR("a", "U8", "[1]", "[1,0]") "}", 1, "`a`: its data_offsets decrease"},
        {"offsets past the end", "{" TENSOR("a", "U8", "[2]", "[0,2]") "}", 1, "`a`: its data_offsets reach past"},
        {"offsets far past the end", "{" TENSOR("a", "U8", "[2]", "[18446744073709551613,18446744073709551615]") "}", 1,
         "reach past"},
        {"an overlap", "{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[2]", "[1,3]") "}", 3,
         "`b`: it overlaps"},
        {"the same bytes twice", "{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[2]", "[0,2]") "}", 2,
         "overlaps"},
        {"nothing inside something", "{" TENSOR("a", "U8", "[2]", "[0,2]") "," TENSOR("b", "U8", "[0]", "[1,1]") "}", 2,
         "`b`: it overlaps"},
        {"a gap", "{" TENSOR("a", "U8", "[1]", "[0,1]") "," TENSOR("b", "U8", "[1]", "[2,3]") "}", 3,
         "`b`: there is a gap"},
        {"a gap first", "{" TENSOR("a", "U8", "[1]", "[1,2]") "}", 2, "`a`: there is a gap"},
        {"bytes after the last", "{" TENSOR("a", "U8", "[1]", "[0,1]") "}", 3, "2 bytes follow the last tensor"},
        {"bytes of no tensor", "{}", 1, "1 bytes follow"},
    };
    for (auto const &file : files) {
        safetensors_t header;
        refuses(file.what, read(safetensors_file(file.header, std::string(file.data, '\0')), header), file.status,
                file.message);
    }
}

static void lengths_are_checked_before_memory_is_asked_for() {
    safetensors_t header;
    for (size_t length = 0; length != 8; ++length)
        refuses("a prefix cut short", read(std::string(length, '\0'), header), uform_malformed_k,
                "no safetensors file");
    for (uint64_t length : {uint64_t(3), uint64_t(100'000'001), uint64_t(1) << 40, ~uint64_t(0), ~uint64_t(0) - 7}) {
        std::string file = safetensors_file("{}", "");
        std::memcpy(file.data(), &length, sizeof(length));
        refuses("a huge header", read(file, header), uform_malformed_k, std::to_string(length).c_str());
    }
}

static void every_truncation_is_refused() {
    checkpoint_t checkpoint;
    checkpoint.tensors = {{"a", {"U8", {3}, "abc"}}, {"b\\u0062", {"F32", {1, 1}, "wxyz"}}};
    std::string const file = checkpoint.file();
    safetensors_t whole;
    CHECK_STATUS(read(file, whole), uform_success_k);
    CHECK(whole.tensors.contains("bb"));
    for (size_t length = 0; length != file.size(); ++length) {
        safetensors_t header;
        CHECK_STATUS(read(file.substr(0, length), header), uform_malformed_k);
    }
    // A header that is cut, and says so, is refused by its text.
    std::string const text = checkpoint.header();
    for (size_t length = 0; length != text.size(); ++length) {
        safetensors_t header;
        CHECK_STATUS(read(safetensors_file(text.substr(0, length), ""), header), uform_malformed_k);
    }
}

static uform_status_t configure(std::string const &text, config_t &config) {
    std::vector<char> const exact(text.begin(), text.end());
    return read_config({exact.data(), exact.size()}, config);
}

static void a_configuration_is_read() {
    config_t config;
    CHECK_STATUS(configure(R"( {"format": 1, "depth": 3, "hidden": 128, "head_dimension": 64, "width": 320,
        "dimensions": 96, "context": 512, "token_width": 48, "choice_temperature_groups": 4, "rotary_base": 5.0e4,
        "norm_epsilon": 1E-5, "local_window": 64, "global_every": 3, "trained": ["text", "\u00e4"],
        "image": {"patch_side": 16, "max_patches": 196}} )",
                           config),
                 uform_success_k);
    CHECK(config.depth == 3 && config.hidden == 128 && config.head_dimension == 64 && config.width == 320);
    CHECK(config.dimensions == 96 && config.context == 512 && config.token_width == 48);
    CHECK(config.choice_temperature_groups == 4 && config.rotary_base == 5e4 && config.norm_epsilon == 1e-5);
    CHECK(config.local_window == 64 && config.global_every == 3);
    CHECK(config.image.patch_side == 16 && config.image.max_patches == 196);
    CHECK(config.window(0) == 64 && config.window(2) == 0 && config.window(3) == 64);
    config_t defaults;
    CHECK_STATUS(
        configure(R"({"depth":1,"hidden":32,"head_dimension":32,"width":64,"dimensions":1,"context":2,"format":1})",
                  defaults),
        uform_success_k);
    CHECK(defaults.token_width == 0 && defaults.choice_temperature_groups == 0 && defaults.rotary_base == 10000);
    CHECK(defaults.norm_epsilon == 1e-6 && defaults.local_window == 0 && defaults.global_every == 0);
}

/** A configuration that is fine, one key of which has another value; an empty one leaves the key out. */
static std::string configuration(std::string const &key, std::string const &value) {
    std::pair<char const *, char const *> const members[] = {
        {"format", "1"}, {"depth", "2"},       {"hidden", "64"},  {"head_dimension", "32"},
        {"width", "64"}, {"dimensions", "32"}, {"context", "16"}, {"local_window", "4"}};
    std::string text = "{", separator;
    bool is_known = false;
    auto const add = [&](std::string const &name, std::string const &number) {
        if (!number.empty()) text += separator + "\"" + name + "\":" + number, separator = ",";
    };
    for (auto const &[name, number] : members) {
        add(name, key == name ? value : number);
        is_known |= key == name;
    }
    if (!is_known) add(key, value);
    return text + "}";
}

static void wrong_configurations_are_refused() {
    config_t config;
    CHECK_STATUS(configure(configuration("global_every", "2"), config), uform_success_k);
    struct {
        char const *key;
        char const *value;
        uform_status_t status;
        char const *message;
    } const wrong[] = {
        {"format", "2", uform_unsupported_k, "format is 2"},
        {"format", "0", uform_unsupported_k, "format is 0"},
        {"format", "", uform_config_mismatch_k, "`format` is missing"},
        {"format", "\"1\"", uform_malformed_k, "number"},
        {"format", "1.0", uform_malformed_k, "whole number"},
        {"depth", "", uform_config_mismatch_k, "`depth` is missing"},
        {"hidden", "", uform_config_mismatch_k, "`hidden` is missing"},
        {"head_dimension", "", uform_config_mismatch_k, "`head_dimension` is missing"},
        {"width", "", uform_config_mismatch_k, "`width` is missing"},
        {"dimensions", "", uform_config_mismatch_k, "`dimensions` is missing"},
        {"context", "", uform_config_mismatch_k, "`context` is missing"},
        {"depth", "0", uform_config_mismatch_k, "`depth` is 0"},
        {"depth", "1025", uform_config_mismatch_k, "`depth` is 1025"},
        {"hidden", "0", uform_config_mismatch_k, "`hidden`"},
        {"hidden", "80", uform_config_mismatch_k, "`hidden` is no multiple"},
        {"hidden", "18446744073709551615", uform_config_mismatch_k, "`hidden`"},
        {"hidden", "18446744073709551616", uform_malformed_k, "`hidden`: a number is too large"},
        {"hidden", "-64", uform_malformed_k, "`hidden`"},
        {"hidden", "64.5", uform_malformed_k, "`hidden`"},
        {"hidden", "\"64\"", uform_malformed_k, "`hidden`"},
        {"hidden", "null", uform_malformed_k, "`hidden`"},
        {"hidden", "[64]", uform_malformed_k, "`hidden`"},
        {"head_dimension", "48", uform_config_mismatch_k, "`head_dimension`"},
        {"head_dimension", "0", uform_config_mismatch_k, "`head_dimension`"},
        {"width", "0", uform_config_mismatch_k, "`width`"},
        {"width", "100", uform_config_mismatch_k, "`width` is no multiple of 64"},
        {"dimensions", "0", uform_config_mismatch_k, "`dimensions`"},
        {"context", "0", uform_config_mismatch_k, "`context`"},
        {"context", "1000000000000", uform_config_mismatch_k, "`context`"},
        {"token_width", "9999999", uform_config_mismatch_k, "`token_width`"},
        {"choice_temperature_groups", "9999999", uform_config_mismatch_k, "`choice_temperature_groups`"},
        {"rotary_base", "0", uform_config_mismatch_k, "`rotary_base`"},
        {"rotary_base", "-1", uform_config_mismatch_k, "`rotary_base`"},
        {"rotary_base", "1e999", uform_malformed_k, "`rotary_base`"},
        {"rotary_base", "NaN", uform_malformed_k, "number"},
        {"norm_epsilon", "0", uform_config_mismatch_k, "`norm_epsilon`"},
        {"norm_epsilon", "2", uform_config_mismatch_k, "`norm_epsilon`"},
        {"norm_epsilon", "1e-", uform_malformed_k, "a number is expected"},
        {"trained", "\"text\"", uform_malformed_k, "`trained`: an array is expected"},
        {"trained", "[1]", uform_malformed_k, "`trained`: a string is expected"},
        {"temperature", "1", uform_config_mismatch_k, "`temperature` is no key"},
        {"Depth", "1", uform_config_mismatch_k, "`Depth` is no key"},
        {"x", "truth", uform_malformed_k, "configuration"},
    };
    for (auto const &entry : wrong)
        refuses(entry.key, configure(configuration(entry.key, entry.value), config), entry.status, entry.message);

    std::string const good = configuration("depth", "2");
    refuses("another format's keys",
            configure(R"({"new": {"a": [1, true, null, {"b": -1.5e-3}]}, "format": 7})", config), uform_unsupported_k,
            "7");
    refuses("a format twice", configure(R"({"format": 1, "format": 1})", config), uform_malformed_k, "twice");
    refuses("a key twice", configure(good.substr(0, good.size() - 1) + ",\"depth\":2}", config), uform_malformed_k,
            "`depth`: the key stands twice");
    std::string const section = R"(,"image":{"patch_side":4,"max_patches":9})";
    refuses("a section twice", configure(good.substr(0, good.size() - 1) + section + section + "}", config),
            uform_malformed_k, "`image`: the key stands twice");
    refuses("an empty text", configure("", config), uform_malformed_k, "byte 0");
    refuses("an array", configure("[]", config), uform_malformed_k, "an object is expected");
    refuses("more after the end", configure(good + "x", config), uform_malformed_k, "something follows");
    refuses("deep", configure("{\"image\":" + std::string(100000, '['), config), uform_malformed_k,
            "nested too deeply");
    refuses("global blocks without a window",
            configure(R"({"format":1,"depth":1,"hidden":32,"head_dimension":32,"width":64,"dimensions":1,"context":2,)"
                      R"("global_every":2})",
                      config),
            uform_config_mismatch_k, "`global_every`");
    for (size_t length = 0; length != good.size(); ++length)
        CHECK_STATUS(configure(good.substr(0, length), config), uform_malformed_k);
}

int main() {
    RUN(a_header_is_read);
    RUN(hostile_headers_are_refused);
    RUN(lengths_are_checked_before_memory_is_asked_for);
    RUN(every_truncation_is_refused);
    RUN(a_configuration_is_read);
    RUN(wrong_configurations_are_refused);
    return check_report();
}
