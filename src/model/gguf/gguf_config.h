#pragma once

#include <cstdint>

#include "anyslot/status.h"
#include "model/gguf/gguf_file.h"
#include "model/model_config.h"

namespace anyslot {

/// What the metadata say, as config.json and generation_config.json of the same model would.
/// Everything under the architecture's name must be understood. Fails like load_model_config.
Expected<ModelConfig> gguf_config(const GgufFile& file, int64_t max_model_len = 0);

}  // namespace anyslot
