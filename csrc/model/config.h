/** The configuration of a checkpoint of format 1: see FORMAT.md. */
#pragma once
#include <string_view>

#include "model.h"

namespace uform {

/**
 *  Reads the configuration's JSON and checks that a model can have it. MALFORMED (no JSON, a key twice, a value of
 *  another type), UNSUPPORTED (another format), CONFIG_MISMATCH (a key that is missing or unknown, a value that no
 * model can have), noted as the thread's failure with the key. May throw std::bad_alloc.
 */
uform_status_t read_config(std::string_view text, config_t &config);

} // namespace uform
