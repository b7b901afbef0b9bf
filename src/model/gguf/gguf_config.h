#pragma once

#include <cstdint>

#include "anyslot/status.h"
#include "model/config_outline.h"
#include "model/gguf/gguf_file.h"
#include "model/model_config.h"

namespace anyslot {

/// What the metadata say, as config.json and generation_config.json of the same model would.
/// Everything under the architecture's name must be understood. Fails like load_model_config.
Expected<ModelConfig> gguf_config(const GgufFile& file, int64_t max_model_len = 0);
/// The same of metadata that need not be understood. The architecture is its family's, or as the
/// file names one that is in no family. Fails for a file that names none.
Expected<ConfigOutline> gguf_config_outline(const GgufFile& file);

}  // namespace anyslot
