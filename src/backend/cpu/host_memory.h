#pragma once

#include <cstddef>

#include "anyslot/status.h"

namespace anyslot::cpu {

/// Zero-filled pages of the process, 64-byte aligned, in huge pages where the system gives them.
class HostMemory {
 public:
  HostMemory() = default;
  HostMemory(HostMemory&& other) noexcept;
  HostMemory& operator=(HostMemory&& other) noexcept;
  ~HostMemory();

  /// Fails with kResourceExhausted; `purpose` names what the memory is for.
  static Expected<HostMemory> allocate(size_t bytes, const char* purpose);

  std::byte* data() const { return data_; }
  size_t size_bytes() const { return bytes_; }

 private:
  void* mapping_ = nullptr;
  size_t mapping_bytes_ = 0;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

}  // namespace anyslot::cpu
