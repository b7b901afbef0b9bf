#pragma once

#include <cublasLt.h>

#include <compare>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "backend/cuda/device_memory.h"
#include "backend/ops.h"

namespace anyslot::cuda {

/// A weight in device memory, in the type of products: [out_features, in_features], row-major.
class CudaLinearWeight : public LinearWeight {
 public:
  CudaLinearWeight(int64_t out_features, int64_t in_features, DeviceMemory memory)
      : LinearWeight(out_features, in_features), memory_(std::move(memory)) {}
  const void* data() const { return memory_.data(); }

 private:
  DeviceMemory memory_;
};

/// cuBLASLt's products, float32 accumulation (no TF32). The algorithm of a shape is asked for once.
class LinearRunner {
 public:
  static Expected<std::unique_ptr<LinearRunner>> create(DType dtype);
  ~LinearRunner();

  Expected<std::unique_ptr<LinearWeight>> load(std::span<const TensorView> parts) const;
  Status run(const CudaLinearWeight& weight, const TensorView& x, const TensorView& out,
             bool accumulate, cudaStream_t stream);

 private:
  struct Key {
    int64_t out_features;
    int64_t in_features;
    int64_t rows;
    int64_t x_stride;
    int64_t out_stride;
    uint32_t alignment;  // of both pointers, in bytes
    auto operator<=>(const Key&) const = default;
  };
  struct Product {
    cublasLtMatrixLayout_t weight = nullptr;
    cublasLtMatrixLayout_t x = nullptr;
    cublasLtMatrixLayout_t out = nullptr;
    cublasLtMatmulAlgo_t algorithm{};
    ~Product();
  };

  explicit LinearRunner(DType dtype) : dtype_(dtype) {}
  Status open();
  Expected<const Product*> find(const Key& key);
  Status make(const Key& key, Product& product) const;

  DType dtype_;
  cublasLtHandle_t handle_ = nullptr;
  cublasLtMatmulDesc_t operation_ = nullptr;
  DeviceMemory workspace_;
  std::map<Key, std::unique_ptr<Product>> products_;
};

}  // namespace anyslot::cuda
