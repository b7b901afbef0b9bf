#pragma once

#include <memory>
#include <string>

#include "engine/model_files.h"

namespace anyslot::internal {

/// A model in one GGUF file. A rag_template.json may stand beside it.
Expected<std::unique_ptr<ModelFiles>> open_gguf_model_files(const std::string& path);

}  // namespace anyslot::internal
