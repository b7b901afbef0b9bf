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

/// kResourceExhausted, naming `what`, its size, and what is free.
Status no_device_memory(std::string_view what, size_t bytes);

/// Memory of the device that only grows. Growing waits for the device and loses the content.
class DeviceMemory {
 public:
  /// At least `bytes`; fails as no_device_memory says, and then holds nothing.
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
  /// kResourceExhausted names the size.
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

/// Data of a step on its way from the host to the device, in memory of its own at both ends.
class StagedCopy {
 public:
  /// Room on the host, once the copy before has left it, and on the device.
  Status reserve(size_t host_bytes, size_t device_bytes, std::string_view what);
  std::byte* host() const { return host_.data(); }
  /// Starts the copy of the first `bytes`. `what` names it in errors.
  Status send(size_t bytes, cudaStream_t stream, std::string_view what);

  template <typename T>
  T* as() const {
    return device_.as<T>();
  }

 private:
  PinnedMemory host_;
  DeviceMemory device_;
  Event sent_;
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
