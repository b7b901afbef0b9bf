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

/// The bytes that a safetensors file has before the values of these tensors, which follow without
/// gap, in this order. Fails with kInvalidArgument when names repeat or a shape does not fit its
/// values.
Expected<std::string> safetensors_header(std::span<const NamedTensor> tensors);

}  // namespace anyslot
