#include "safetensors.h"

#include <algorithm>
#include <cinttypes>

#include "../core/failure.h"
#include "json.h"

namespace uform {
namespace {

constexpr uint64_t most_header_bytes_k = 100'000'000;
constexpr size_t most_rank_k = 8;

/** Bytes of a scalar that the format knows; 0 for others. */
uint64_t scalar_bytes(std::string_view name) noexcept {
    struct entry_t {
        std::string_view name;
        uint64_t bytes;
    };
    static constexpr entry_t entries[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E4M3", 1}, {"F8_E5M2", 1},
                                          {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
                                          {"U32", 4},  {"F32", 4}, {"I64", 8}, {"U64", 8},     {"F64", 8}};
    for (entry_t const &entry : entries)
        if (entry.name == name) return entry.bytes;
    return 0;
}

uform_status_t malformed(std::string const &name, char const *reason) noexcept {
    return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: tensor `%.100s`: %s", name.c_str(), reason);
}

bool read_tensor(json_reader_t &json, tensor_t &tensor) {
    bool has_scalar = false, has_shape = false, has_span = false;
    std::string key;
    json.enter_object();
    while (json.next_member(key)) {
        if (key == "dtype" && !has_scalar) has_scalar = json.read_string(tensor.scalar);
        else if (key == "shape" && !has_shape) {
            has_shape = json.enter_array();
            while (json.next_element()) {
                if (tensor.shape.size() == most_rank_k) return json.fail("a shape has more than 8 dimensions");
                json.read_count(tensor.shape.emplace_back());
            }
        }
        else if (key == "data_offsets" && !has_span) {
            has_span = json.enter_array();
            if (!json.next_element() || !json.read_count(tensor.begin) || !json.next_element() ||
                !json.read_count(tensor.end) || json.next_element())
                return json.fail("data_offsets is not a pair of numbers");
        }
        else return json.fail("a tensor has a key twice, or one that is unknown");
    }
    if (!json.failed() && !(has_scalar && has_shape && has_span))
        return json.fail("a tensor lacks its dtype, shape or data_offsets");
    return !json.failed();
}

bool read_header(json_reader_t &json, safetensors_t &header) {
    std::string key, word;
    bool has_metadata = false;
    json.enter_object();
    while (json.next_member(key)) {
        if (key == "__metadata__") {
            if (has_metadata) return json.fail("__metadata__ stands twice");
            has_metadata = json.enter_object();
            while (json.next_member(key)) {
                auto const [place, is_new] = header.metadata.try_emplace(key);
                if (!is_new) return json.fail("__metadata__ has a key twice");
                json.read_string(place->second);
            }
            continue;
        }
        auto const [place, is_new] = header.tensors.try_emplace(key);
        if (!is_new) return json.fail("a tensor stands twice");
        if (!read_tensor(json, place->second)) return false;
    }
    return json.finish();
}

/** Checks spans, relative to the data, and makes them relative to the file. */
uform_status_t check_spans(safetensors_t &header, uint64_t data_begin, uint64_t data_bytes) {
    std::vector<std::pair<std::string const, tensor_t> *> order;
    for (auto &entry : header.tensors) order.push_back(&entry);
    std::sort(order.begin(), order.end(), [](auto *a, auto *b) {
        return std::pair(a->second.begin, a->second.end) < std::pair(b->second.begin, b->second.end);
    });
    uint64_t covered = 0;
    for (auto *entry : order) {
        auto &[name, tensor] = *entry;
        if (tensor.end < tensor.begin) return malformed(name, "its data_offsets decrease");
        if (tensor.end > data_bytes) return malformed(name, "its data_offsets reach past the end of the file");
        uint64_t bytes = scalar_bytes(tensor.scalar);
        if (!bytes)
            return fail(uform_unknown_kind_k, UFORM_NO_ITEM, "checkpoint: tensor `%.100s` has the unknown scalar %.32s",
                        name.c_str(), tensor.scalar.c_str());
        for (uint64_t extent : tensor.shape)
            if (__builtin_mul_overflow(bytes, extent, &bytes)) return malformed(name, "its shape overflows");
        if (bytes != tensor.end - tensor.begin)
            return malformed(name, "its data_offsets do not fit its shape and scalar");
        if (tensor.begin != covered)
            return malformed(name, tensor.begin < covered ? "it overlaps another one" : "there is a gap before it");
        covered = tensor.end;
        tensor.begin += data_begin;
        tensor.end += data_begin;
    }
    if (covered != data_bytes)
        return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: %" PRIu64 " bytes follow the last tensor",
                    data_bytes - covered);
    return uform_success_k;
}

} // namespace

uform_status_t read_safetensors(source_t const &source, safetensors_t &header) {
    uint8_t prefix[8];
    if (source.size() < sizeof(prefix))
        return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: %" PRIu64 " bytes are no safetensors file",
                    source.size());
    if (uform_status_t const status = source.read(0, std::as_writable_bytes(std::span(prefix)))) return status;
    uint64_t length = 0;
    for (size_t i = 0; i != sizeof(prefix); ++i) length |= static_cast<uint64_t>(prefix[i]) << 8 * i;
    if (length > most_header_bytes_k || length > source.size() - sizeof(prefix))
        return fail(uform_malformed_k, UFORM_NO_ITEM,
                    "checkpoint: a header of %" PRIu64 " bytes does not fit a file of %" PRIu64
                    " bytes; it is truncated, or no safetensors file",
                    length, source.size());
    std::string text(static_cast<size_t>(length), '\0');
    if (uform_status_t const status = source.read(sizeof(prefix), std::as_writable_bytes(std::span(text))))
        return status;
    // The one thing that tells the format from others; JSON alone would allow white space before.
    if (!text.starts_with('{'))
        return fail(uform_malformed_k, UFORM_NO_ITEM,
                    "checkpoint: its header is no JSON object; it is no safetensors file");
    json_reader_t json(text);
    if (!read_header(json, header))
        return fail(uform_malformed_k, UFORM_NO_ITEM, "checkpoint: at byte %zu of the header: %s", json.position(),
                    json.error());
    uint64_t const data_begin = sizeof(prefix) + length;
    return check_spans(header, data_begin, source.size() - data_begin);
}

} // namespace uform
