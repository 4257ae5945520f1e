/** Checkpoints made by the tests: a writer that can write wrong ones too. */
#pragma once
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "kernels/scalars.h"

/** A file of the safetensors format: the header's length, the header, the data. */
inline std::string safetensors_file(std::string const &header, std::string const &data) {
    std::string file;
    for (unsigned shift = 0; shift != 64; shift += 8) file += static_cast<char>(header.size() >> shift & 0xff);
    return file + header + data;
}

struct written_tensor_t {
    std::string scalar;
    std::vector<uint64_t> shape;
    std::string bytes;
};

/** Sizes of a small model. */
struct sizes_t {
    size_t depth = 2;
    size_t hidden = 64;
    size_t head_dimension = 32;
    size_t width = 64;
    size_t dimensions = 40;
    size_t context = 16;
    size_t token_width = 5;
    size_t choice_temperature_groups = 3;
};

class checkpoint_t {
  public:
    std::map<std::string, written_tensor_t> tensors;
    std::string config; /**< JSON; empty: none is written. */

    /** A model whose every number follows from its tensor's name and its place: see `value`. */
    explicit checkpoint_t(sizes_t const &sizes = {}) {
        size_t const hidden = sizes.hidden;
        config = config_text(sizes);
        add("embed.bytes", {257, hidden});
        add("embed.modality", {4, hidden});
        for (size_t index = 0; index != sizes.depth; ++index) {
            std::string const block = "blocks." + std::to_string(index) + ".";
            add(block + "attention.norm", {hidden});
            add(block + "attention.qkv", {3 * hidden, hidden});
            add(block + "attention.query_norm", {sizes.head_dimension});
            add(block + "attention.key_norm", {sizes.head_dimension});
            add(block + "attention.output", {hidden, hidden});
            add(block + "mlp.norm", {hidden});
            add(block + "mlp.gate_up", {2 * sizes.width, hidden});
            add(block + "mlp.down", {hidden, sizes.width});
        }
        add("final.norm", {hidden});
        add("heads.embedding", {sizes.dimensions, hidden});
        if (sizes.token_width) add("heads.tokens", {sizes.token_width, hidden});
        if (sizes.choice_temperature_groups) {
            add("heads.bytes", {256, hidden});
            add("heads.inverse_temperatures", {sizes.choice_temperature_groups}, "F32");
        }
    }

    static std::string config_text(sizes_t const &sizes) {
        std::string text = "{\"format\":1";
        auto const number = [&](char const *key, size_t value) {
            text += std::string(",\"") + key + "\":" + std::to_string(value);
        };
        number("depth", sizes.depth);
        number("hidden", sizes.hidden);
        number("head_dimension", sizes.head_dimension);
        number("width", sizes.width);
        number("dimensions", sizes.dimensions);
        number("context", sizes.context);
        number("token_width", sizes.token_width);
        number("choice_temperature_groups", sizes.choice_temperature_groups);
        return text + ",\"trained\":[\"text\"]}";
    }

    /** The number at a place of a tensor: exact in BF16, and in F32 between 0.5 and 1.5 for the temperatures. */
    static float value(std::string const &name, size_t index) {
        uint32_t seed = 2166136261u;
        for (char letter : name) seed = (seed ^ static_cast<unsigned char>(letter)) * 16777619u;
        seed = (seed ^ static_cast<uint32_t>(index)) * 2654435761u;
        seed ^= seed >> 15;
        if (name == "heads.inverse_temperatures") return 0.5f + static_cast<float>(seed >> 8) * 0x1p-24f;
        return uform::bf16_to_f32(uform::f32_to_bf16(static_cast<float>(seed >> 8) * 0x1p-23f - 1.f));
    }

    void add(std::string const &name, std::vector<uint64_t> shape, std::string const &scalar = "BF16") {
        size_t count = 1;
        for (uint64_t extent : shape) count *= extent;
        std::string bytes;
        for (size_t index = 0; index != count; ++index) {
            uint32_t const bits = uform::f32_to_bits(value(name, index));
            if (scalar == "BF16") bytes.append({static_cast<char>(bits >> 16), static_cast<char>(bits >> 24)});
            else bytes.append(reinterpret_cast<char const *>(&bits), sizeof(bits));
        }
        tensors[name] = {scalar, std::move(shape), std::move(bytes)};
    }

    /** Puts a number in the place of another one. */
    void poke(std::string const &name, size_t index, float number) {
        written_tensor_t &tensor = tensors.at(name);
        uint32_t const bits = uform::f32_to_bits(number);
        uint16_t const half = static_cast<uint16_t>(bits >> 16);
        if (tensor.scalar == "F32") std::memcpy(tensor.bytes.data() + 4 * index, &bits, 4);
        else std::memcpy(tensor.bytes.data() + 2 * index, &half, 2);
    }

    std::string header() const {
        std::string text = "{";
        if (!config.empty()) {
            text += "\"__metadata__\":{\"uform\":\"";
            for (char letter : config)
                text += letter == '"' || letter == '\\' ? std::string("\\") + letter : std::string(1, letter);
            text += "\"}";
        }
        size_t begin = 0;
        for (auto const &[name, tensor] : tensors) {
            if (text.size() > 1) text += ",";
            text += "\"" + name + "\":{\"dtype\":\"" + tensor.scalar + "\",\"shape\":[";
            for (size_t axis = 0; axis != tensor.shape.size(); ++axis)
                text += (axis ? "," : "") + std::to_string(tensor.shape[axis]);
            text += "],\"data_offsets\":[" + std::to_string(begin) + "," + std::to_string(begin + tensor.bytes.size()) +
                    "]}";
            begin += tensor.bytes.size();
        }
        return text + "}";
    }

    std::string file() const {
        std::string data;
        for (auto const &[name, tensor] : tensors) data += tensor.bytes;
        return safetensors_file(header(), data);
    }
};
