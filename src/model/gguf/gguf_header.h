#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "anyslot/status.h"
#include "model/gguf/gguf_types.h"

namespace anyslot {

/// The version of the format that can be read.
inline constexpr uint32_t kGgufVersion = 3;

/// Types of metadata, numbered as in the format.
enum class GgufValueType : uint32_t {
  kUint8,
  kInt8,
  kUint16,
  kInt16,
  kUint32,
  kInt32,
  kFloat32,
  kBool,
  kString,
  kArray,
  kUint64,
  kInt64,
  kFloat64
};

/// A number of the metadata. Whole ones that int64 does not hold become doubles.
using GgufNumber = std::variant<bool, int64_t, double>;

/// A list of the metadata: of strings or, still encoded, of numbers. It looks into the file.
struct GgufArray {
  GgufValueType type = GgufValueType::kUint8;  // of the elements
  size_t count = 0;
  std::span<const std::byte> numbers;     // empty for strings
  std::vector<std::string_view> strings;  // empty for numbers

  /// Element `index` of a list of numbers.
  GgufNumber number(size_t index) const;
};

using GgufValue = std::variant<bool, int64_t, double, std::string_view, GgufArray>;

/// One tensor, checked against the file.
struct GgufTensor {
  const GgufTensorType* type = nullptr;
  std::vector<int64_t> shape;  // 1 to 4 dimensions, at least 1 each; the last is a row's length
  size_t begin = 0;            // bytes [begin, end) of the file
  size_t end = 0;
};

template <typename Value>
using GgufMap = std::map<std::string, Value, std::less<>>;

struct GgufHeader {
  GgufMap<GgufValue> metadata;
  GgufMap<GgufTensor> tensors;
};

/// Reads the header of a GGUF file of version 3, little-endian, and believes nothing: counts,
/// lengths, types, shapes and offsets must fit the file, keys and names must be distinct, tensors
/// aligned and apart. Touches only the header's bytes, to which the result refers. Fails with
/// kFailedPrecondition in one line that begins with `file_name` and names the key or the tensor.
Expected<GgufHeader> parse_gguf_header(const std::string& file_name,
                                       std::span<const std::byte> file);

}  // namespace anyslot
