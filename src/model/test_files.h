#pragma once

#include <cstdint>
#include <cstring>
#include <string>

#include "support/temporary_folder.h"

namespace anyslot {

using testing_support::read_bytes;
using testing_support::TemporaryFolder;

/// The bytes of a safetensors file with this header and `data_bytes` zeros.
inline std::string safetensors_bytes(const std::string& header, size_t data_bytes) {
  const uint64_t length = header.size();
  std::string bytes(sizeof length, '\0');
  std::memcpy(bytes.data(), &length, sizeof length);
  return bytes + header + std::string(data_bytes, '\0');
}

}  // namespace anyslot
