#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <string>

namespace anyslot::cli {

/// The header of a safetensors file and the bytes of its tensors.
struct TensorFileParts {
  nlohmann::json header;
  std::string data;
};

inline TensorFileParts parse_tensor_file(const std::string& bytes) {
  uint64_t size = 0;
  EXPECT_GE(bytes.size(), sizeof size);
  std::memcpy(&size, bytes.data(), sizeof size);
  return {nlohmann::json::parse(bytes.substr(8, size)), bytes.substr(8 + size)};
}

inline std::string tensor_file_bytes(const TensorFileParts& parts) {
  const std::string header = parts.header.dump();
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + parts.data;
}

}  // namespace anyslot::cli
