#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/dtype.h"

namespace anyslot {

/// A tensor as the header of its file describes it.
struct TensorInfo {
  std::string name;
  std::string type;  // as the file names it: "BF16", "Q4_K"
  int64_t num_elements = 0;
  int64_t bytes = 0;
  std::optional<DType> dtype;  // of plain numbers; nullopt: blocks of a GGUF file, or unusable
  bool is_setting = false;     // read with the model's settings: factors of its RoPE
};

}  // namespace anyslot
