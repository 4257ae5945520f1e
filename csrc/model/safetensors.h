/**
 *  The header of a safetensors file: where each tensor lies. Nothing in it is trusted: see `read_safetensors`.
 *  Format: https://github.com/huggingface/safetensors, "Format".
 */
#pragma once
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "source.h"

namespace uform {

struct tensor_t {
    std::string scalar; /**< As the file names it: "BF16", "F32", ... */
    std::vector<uint64_t> shape;
    uint64_t begin = 0; /**< Bytes from the start of the file. */
    uint64_t end = 0;
};

struct safetensors_t {
    std::map<std::string, tensor_t> tensors;
    std::map<std::string, std::string> metadata;
};

/**
 *  Reads and checks the header: its length against the file's before memory is asked for, strict JSON, no key twice,
 *  spans that agree with shape and scalar, lie inside the file, and cover its data without gaps or overlaps.
 *  MALFORMED (with the tensor or position) or IO, noted as the thread's failure. May throw std::bad_alloc.
 */
uform_status_t read_safetensors(source_t const &source, safetensors_t &header);

} // namespace uform
