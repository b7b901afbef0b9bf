#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// One tensor as a safetensors header describes it; checked against the file.
struct TensorEntry {
  std::string name;
  std::string dtype;           // as written: "F32", "BF16", "I64", ...
  std::vector<int64_t> shape;  // non-negative; the product fits int64
  size_t begin = 0;            // bytes [begin, end) of the file
  size_t end = 0;
};

/// Bytes of one element, or nullopt for a dtype that this reader does not know.
std::optional<size_t> safetensors_dtype_size(std::string_view dtype);

/// "[320, 64]"
std::string shape_text(std::span<const int64_t> shape);

/// Reads the header of a whole file (uint64 length, JSON, data) and believes nothing: lengths,
/// shapes and offsets must fit the file, and the tensors must fill the data without gap or overlap,
/// as the format demands. Touches only the header's bytes. Fails with kFailedPrecondition; the
/// message begins with `file_name` and names the tensor.
Expected<std::vector<TensorEntry>> parse_safetensors_header(const std::string& file_name,
                                                            std::span<const std::byte> file);

}  // namespace anyslot
