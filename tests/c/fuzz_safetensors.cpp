/**
 *  Fuzzes what reads checkpoints: JSON, safetensors, the configuration, and loading in both scalars.
 *  Build with `clang++ -fsanitize=fuzzer,address,undefined`; `fuzz_seeds DIRECTORY` writes a corpus to start from.
 */
#include <cstdlib>
#include <string_view>

#include "model/config.h"
#include "model/model.h"

extern "C" int LLVMFuzzerTestOneInput(uint8_t const *data, size_t size) {
    uform::config_t config;
    uform::read_config({reinterpret_cast<char const *>(data), size}, config);

    uform_model_load_ram_t options {};
    options.quantization = size % 2 ? uform_bf16_k : uform_e4m3_k;
    uform_model_t *model = nullptr;
    uform_status_t const status = uform_model_load_ram_buffer(data, size, &options, &model);
    // Success and a model go together; memory follows the file's size but for the rotary table and padding.
    if ((status == uform_success_k) != (model != nullptr)) std::abort();
    if (model && model->memory_usage > 64 * size + (size_t(64) << 20)) std::abort();
    uform_model_free(model);
    return 0;
}
