#include <cstddef>
#include <cstdint>
#include <span>

#include "model/safetensors_header.h"

// The input is a file. What is accepted must lie inside it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto file = std::as_bytes(std::span(data, size));
  const auto tensors = anyslot::parse_safetensors_header("fuzz", file);
  if (!tensors) return 0;
  for (const anyslot::TensorEntry& tensor : *tensors) {
    if (tensor.begin > tensor.end || tensor.end > size) __builtin_trap();
  }
  return 0;
}
