#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>

namespace anyslot::cli {

/// A folder that lives as long as the object.
class TestFolder {
 public:
  TestFolder() {
    std::string pattern = testing::TempDir() + "anyslot-test-XXXXXX";
    EXPECT_NE(::mkdtemp(pattern.data()), nullptr);
    path_ = pattern;
  }
  ~TestFolder() {
    std::error_code error;
    std::filesystem::remove_all(path_, error);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path_ / name, std::ios::binary) << text;
    return *this / name;
  }
  size_t num_entries() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::filesystem::path path_;
};

inline std::string file_text(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// The header of a safetensors file and the bytes of its tensors.
struct TensorFileParts {
  nlohmann::json header;
  std::string data;
};

inline TensorFileParts read_tensor_file(const std::string& path) {
  const std::string bytes = file_text(path);
  uint64_t size = 0;
  EXPECT_GE(bytes.size(), sizeof size) << path;
  std::memcpy(&size, bytes.data(), sizeof size);
  return {nlohmann::json::parse(bytes.substr(8, size)), bytes.substr(8 + size)};
}

inline void write_tensor_file(const std::string& path, const TensorFileParts& parts) {
  const std::string header = parts.header.dump();
  const uint64_t size = header.size();
  std::ofstream(path, std::ios::binary)
      << std::string(reinterpret_cast<const char*>(&size), sizeof size) << header << parts.data;
}

}  // namespace anyslot::cli
