#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// What a safetensors file with one float32 tensor holds before its values: the file is these bytes
/// and then those of `values`, row-major. Fails with kInvalidArgument when the shape does not fit
/// the values or the name cannot be written.
Expected<std::string> float32_tensor_header(const std::string& name, std::span<const float> values,
                                            const std::vector<int64_t>& shape);

}  // namespace anyslot
