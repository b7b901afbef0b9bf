#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "base/dtype.h"

namespace anyslot {

/// How a GGUF file stores the numbers of a tensor: each row as blocks of consecutive numbers.
struct GgufTensorType {
  uint32_t number = 0;  // as the file has it
  const char* name = "";
  size_t block_elements = 1;
  size_t block_bytes = 0;
  std::optional<DType> dtype;  // of plain numbers; nullopt: blocks are decoded
  /// Decodes one block of block_bytes into block_elements numbers; null for plain numbers.
  void (*decode)(const uint8_t* block, float* out) = nullptr;

  /// Of others only names and sizes are known.
  bool is_readable() const { return dtype.has_value() || decode != nullptr; }
};

/// nullptr for a number that is not known.
const GgufTensorType* find_gguf_type(uint32_t number);
/// Names of the types that can be read, for messages.
std::string supported_gguf_types();

/// Decodes whole blocks. `out` has as many numbers as `blocks` hold. Not for plain numbers, nor for
/// types that cannot be read.
void decode_gguf_blocks(const GgufTensorType& type, std::span<const std::byte> blocks,
                        std::span<float> out);

}  // namespace anyslot
