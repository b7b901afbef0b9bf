#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "model/gguf/gguf_header.h"

namespace anyslot::testing_gguf {

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

inline std::string raw_text(const std::string& text) { return raw<uint64_t>(text.size()) + text; }

/// Numbers of the tensor types that tests write.
inline constexpr uint32_t kF32 = 0;
inline constexpr uint32_t kF16 = 1;
inline constexpr uint32_t kQ4_0 = 2;
inline constexpr uint32_t kQ8_0 = 8;
inline constexpr uint32_t kBF16 = 30;

/// Writes a GGUF file. Its members may be changed to damage it.
struct GgufWriter {
  struct Tensor {
    std::string name;
    std::vector<uint64_t> dimensions;  // as in the file: the size of a row first
    uint32_t type = kF32;
    uint64_t offset = 0;
    std::string data;
  };

  std::string magic = "GGUF";
  uint32_t version = 3;
  uint64_t alignment = 32;
  std::vector<std::pair<std::string, std::string>> metadata;  // key; type and value as written
  std::vector<Tensor> tensors;

  template <typename T>
  void add(const std::string& key, GgufValueType type, T value) {
    metadata.emplace_back(key, raw(static_cast<uint32_t>(type)) + raw(value));
  }
  void add_u32(const std::string& key, uint32_t value) { add(key, GgufValueType::kUint32, value); }
  void add_f32(const std::string& key, double value) {
    add(key, GgufValueType::kFloat32, static_cast<float>(value));
  }
  void add_bool(const std::string& key, bool value) {
    add(key, GgufValueType::kBool, static_cast<uint8_t>(value));
  }
  void add_text(const std::string& key, const std::string& value) {
    metadata.emplace_back(key,
                          raw(static_cast<uint32_t>(GgufValueType::kString)) + raw_text(value));
  }
  void add_list(const std::string& key, GgufValueType type, uint64_t count,
                const std::string& elements) {
    metadata.emplace_back(key, raw(static_cast<uint32_t>(GgufValueType::kArray)) +
                                   raw(static_cast<uint32_t>(type)) + raw(count) + elements);
  }
  void add_texts(const std::string& key, const std::vector<std::string>& texts) {
    std::string elements;
    for (const std::string& text : texts) elements += raw_text(text);
    add_list(key, GgufValueType::kString, texts.size(), elements);
  }
  void add_i32s(const std::string& key, const std::vector<int32_t>& values) {
    std::string elements;
    for (const int32_t value : values) elements += raw(value);
    add_list(key, GgufValueType::kInt32, values.size(), elements);
  }
  /// Takes back what was added under the key.
  void remove(const std::string& key) {
    std::erase_if(metadata, [&](const auto& entry) { return entry.first == key; });
  }

  /// Behind the others. `shape`: as elsewhere, the size of a row last.
  void add_tensor(const std::string& name, const std::vector<int64_t>& shape, uint32_t type,
                  std::string data) {
    uint64_t offset = 0;
    for (const Tensor& tensor : tensors) offset = padded(tensor.offset + tensor.data.size());
    tensors.push_back({name, {shape.rbegin(), shape.rend()}, type, offset, std::move(data)});
  }

  std::string header() const {
    std::string bytes = magic + raw(version) + raw<uint64_t>(tensors.size());
    bytes += raw<uint64_t>(metadata.size());
    for (const auto& [key, value] : metadata) bytes += raw_text(key) + value;
    for (const Tensor& tensor : tensors) {
      bytes += raw_text(tensor.name) + raw(static_cast<uint32_t>(tensor.dimensions.size()));
      for (const uint64_t dimension : tensor.dimensions) bytes += raw(dimension);
      bytes += raw(tensor.type) + raw(tensor.offset);
    }
    return bytes;
  }

  std::string bytes() const {
    std::string bytes = header();
    bytes.resize(padded(bytes.size()));
    const size_t data_begin = bytes.size();
    for (const Tensor& tensor : tensors) {
      bytes.resize(std::max<size_t>(bytes.size(), data_begin + tensor.offset + tensor.data.size()));
      bytes.replace(data_begin + tensor.offset, tensor.data.size(), tensor.data);
    }
    return bytes;
  }

 private:
  uint64_t padded(uint64_t size) const { return (size + alignment - 1) / alignment * alignment; }
};

}  // namespace anyslot::testing_gguf
