#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string_view>
#include <utility>

#include "anyslot/status.h"
#include "backend/ops.h"

namespace anyslot::cuda {

struct FreeDevice {
  void operator()(void* data) const { cudaFree(data); }
};
struct FreePinned {
  void operator()(void* data) const { cudaFreeHost(data); }
};

/// Memory of the device that only grows. Growing waits for the device and loses the content.
class DeviceMemory {
 public:
  /// At least `bytes`; kResourceExhausted names `what` and the sizes.
  Status reserve(size_t bytes, std::string_view what);
  Status clear();

  void* data() const { return data_.get(); }
  template <typename T>
  T* as() const {
    return static_cast<T*>(data_.get());
  }
  size_t size_bytes() const { return bytes_; }

 private:
  std::unique_ptr<void, FreeDevice> data_;
  size_t bytes_ = 0;
};

/// Host memory that the device copies from without a stop in between. Growing loses the content.
class PinnedMemory {
 public:
  Status reserve(size_t bytes);
  std::byte* data() const { return static_cast<std::byte*>(data_.get()); }

 private:
  std::unique_ptr<void, FreePinned> data_;
  size_t bytes_ = 0;
};

/// A point in a stream that the host can wait for.
class Event {
 public:
  Event() = default;
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;
  ~Event();
  Status record(cudaStream_t stream);
  /// Returns at once when nothing was recorded.
  Status wait() const;
  /// Lets what comes in `stream` from now on wait, if something was recorded.
  Status let_wait(cudaStream_t stream) const;

 private:
  cudaEvent_t event_ = nullptr;
};

class CudaBuffer : public DeviceBuffer {
 public:
  CudaBuffer(DeviceMemory memory, size_t bytes) : memory_(std::move(memory)), bytes_(bytes) {}
  void* data() override { return memory_.data(); }
  size_t size_bytes() const override { return bytes_; }
  Status write(std::span<const std::byte> bytes) override;
  Status read(std::span<std::byte> bytes) override;

 private:
  DeviceMemory memory_;
  size_t bytes_;
};

}  // namespace anyslot::cuda
