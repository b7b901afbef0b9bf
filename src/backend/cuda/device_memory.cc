#include "backend/cuda/device_memory.h"

#include <algorithm>
#include <string>

#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

Status no_device_memory(std::string_view what, size_t bytes) {
  size_t free_bytes = 0;
  size_t total_bytes = 0;
  if (Status status = cuda_status(cudaMemGetInfo(&free_bytes, &total_bytes), "reading free memory");
      !status) {
    return status;
  }
  return resource_exhausted("no GPU memory for " + std::string(what) + " of " +
                            std::to_string(bytes) + " bytes: " + std::to_string(free_bytes) +
                            " of " + std::to_string(total_bytes) + " bytes are free");
}

Status DeviceMemory::reserve(size_t bytes, std::string_view what) {
  bytes = std::max<size_t>(bytes, 1);
  if (bytes <= bytes_) return {};
  data_.reset();
  bytes_ = 0;
  void* data = nullptr;
  Status status = cuda_status(cudaMalloc(&data, bytes), what);
  if (status.code() == StatusCode::kResourceExhausted) return no_device_memory(what, bytes);
  if (!status) return status;
  data_.reset(data);
  bytes_ = bytes;
  return {};
}

Status DeviceMemory::clear() {
  return cuda_status(cudaMemset(data_.get(), 0, bytes_), "clearing device memory");
}

Status PinnedMemory::reserve(size_t bytes) {
  if (bytes <= bytes_) return {};
  data_.reset();
  bytes_ = 0;
  void* data = nullptr;
  if (Status status = cuda_status(cudaMallocHost(&data, bytes),
                                  "pinned host memory of " + std::to_string(bytes) + " bytes");
      !status) {
    return status;
  }
  data_.reset(data);
  bytes_ = bytes;
  return {};
}

Event::~Event() {
  if (event_ != nullptr) cudaEventDestroy(event_);
}

Status Event::record(cudaStream_t stream) {
  if (event_ == nullptr) {
    Status status =
        cuda_status(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "an event");
    if (!status) return status;
  }
  return cuda_status(cudaEventRecord(event_, stream), "an event");
}

Status Event::wait() const {
  return event_ == nullptr ? Status()
                           : cuda_status(cudaEventSynchronize(event_), "work of an earlier step");
}

Status Event::let_wait(cudaStream_t stream) const {
  return event_ == nullptr ? Status()
                           : cuda_status(cudaStreamWaitEvent(stream, event_, 0), "an event");
}

Status StagedCopy::reserve(size_t host_bytes, size_t device_bytes, std::string_view what) {
  if (Status status = sent_.wait(); !status) return status;
  if (Status status = host_.reserve(host_bytes); !status) return status;
  return device_.reserve(device_bytes, what);
}

Status StagedCopy::send(size_t bytes, cudaStream_t stream, std::string_view what) {
  Status status = cuda_status(
      cudaMemcpyAsync(device_.data(), host_.data(), bytes, cudaMemcpyHostToDevice, stream), what);
  if (!status) return status;
  status = sent_.record(stream);
  // What cannot be waited for must not go on: the host's memory is written again.
  if (!status) static_cast<void>(cuda_status(cudaStreamSynchronize(stream), what));
  return status;
}

Status CudaBuffer::write(std::span<const std::byte> bytes) {
  if (bytes.size() > bytes_) return invalid_argument("a buffer is smaller than what is written");
  return cuda_status(cudaMemcpy(memory_.data(), bytes.data(), bytes.size(), cudaMemcpyHostToDevice),
                     "writing a buffer");
}

Status CudaBuffer::read(std::span<std::byte> bytes) {
  if (bytes.size() > bytes_) return invalid_argument("a buffer is smaller than what is read");
  return cuda_status(cudaMemcpy(bytes.data(), memory_.data(), bytes.size(), cudaMemcpyDeviceToHost),
                     "reading a buffer");
}

}  // namespace anyslot::cuda
