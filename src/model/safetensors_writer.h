#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// A float32 tensor to write; values are row-major and somebody else's.
struct NamedTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::span<const float> values;
};

/// Writes one safetensors file. It appears whole or not at all: a new file beside it is filled and
/// then renamed over `path`. Fails with kInvalidArgument when the place cannot be written, names
/// repeat or a shape does not fit its values, and with kFailedPrecondition when writing breaks off.
Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors);

}  // namespace anyslot
