#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// Writes one float32 tensor as a safetensors file: all of it, or nothing (a temporary file is
/// renamed). Fails with kInvalidArgument when the place cannot be written.
Status write_float32_tensor(const std::string& path, const std::string& name,
                            std::span<const float> values, const std::vector<int64_t>& shape);

}  // namespace anyslot
