#include "backend/cuda/linear.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/op_checks.h"

namespace anyslot::cuda {

namespace {

constexpr size_t kWorkspaceBytes = size_t{64} << 20;

Status blas_status(cublasStatus_t status, const char* what) {
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  return internal_error(std::string(what) + ": " + cublasLtGetStatusString(status));
}

cudaDataType element_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
    case DType::kFloat8E4M3:  // of KV only
      break;
    case DType::kBFloat16:
      return CUDA_R_16BF;
    case DType::kFloat16:
      return CUDA_R_16F;
  }
  return CUDA_R_32F;
}

/// A part's rows as products read them, one after the other.
void append_rows(const TensorView& part, DType dtype, std::byte* to) {
  const size_t row_bytes = static_cast<size_t>(part.cols) * dtype_size(dtype);
  for (int64_t r = 0; r < part.rows; ++r, to += row_bytes) {
    if (part.dtype == dtype) {
      std::memcpy(to, part.row(r), row_bytes);
      continue;
    }
    for (size_t c = 0; c < static_cast<size_t>(part.cols); ++c) {
      store_element(to, dtype, c, load_element(part.row(r), part.dtype, c));
    }
  }
}

uint32_t alignment_of(const TensorView& view) {
  constexpr uint64_t kLargest = 256;
  const auto address = reinterpret_cast<uint64_t>(view.data);
  const uint64_t bits = address | kLargest;
  return static_cast<uint32_t>(uint64_t{1} << std::countr_zero(bits));
}

}  // namespace

LinearRunner::Product::~Product() {
  for (const auto layout : {weight, x, out}) {
    if (layout != nullptr) cublasLtMatrixLayoutDestroy(layout);
  }
}

Expected<std::unique_ptr<LinearRunner>> LinearRunner::create(DType dtype) {
  std::unique_ptr<LinearRunner> runner(new LinearRunner(dtype));
  if (Status status = runner->open(); !status) return status;
  return runner;
}

LinearRunner::~LinearRunner() {
  products_.clear();
  if (operation_ != nullptr) cublasLtMatmulDescDestroy(operation_);
  if (handle_ != nullptr) cublasLtDestroy(handle_);
}

Status LinearRunner::open() {
  if (Status status = blas_status(cublasLtCreate(&handle_), "cuBLASLt"); !status) return status;
  if (Status status = blas_status(
          cublasLtMatmulDescCreate(&operation_, CUBLAS_COMPUTE_32F, CUDA_R_32F), "cuBLASLt");
      !status) {
    return status;
  }
  // Its matrices are column-major: out^T = weight x^T, with the weight as it lies transposed.
  const cublasOperation_t transposed = CUBLAS_OP_T;
  if (Status status =
          blas_status(cublasLtMatmulDescSetAttribute(operation_, CUBLASLT_MATMUL_DESC_TRANSA,
                                                     &transposed, sizeof transposed),
                      "cuBLASLt");
      !status) {
    return status;
  }
  return workspace_.reserve(kWorkspaceBytes, "the workspace of products");
}

Expected<std::unique_ptr<LinearWeight>> LinearRunner::load(
    std::span<const TensorView> parts) const {
  const Expected<StackedShape> shape = stacked_shape(parts);
  if (!shape) return shape.status();
  const auto [out_features, in_features] = *shape;
  const size_t bytes = static_cast<size_t>(out_features * in_features) * dtype_size(dtype_);
  DeviceMemory memory;
  if (Status status = memory.reserve(bytes, "a weight"); !status) return status;
  size_t offset = 0;
  for (const TensorView& part : parts) {
    const size_t size = static_cast<size_t>(part.rows * in_features) * dtype_size(dtype_);
    std::vector<std::byte> packed;
    const bool is_packed = part.dtype == dtype_ && part.row_stride == part.cols;
    if (!is_packed) {
      packed.resize(size);
      append_rows(part, dtype_, packed.data());
    }
    const void* from = is_packed ? part.data : packed.data();
    if (Status status = cuda_status(
            cudaMemcpy(memory.as<std::byte>() + offset, from, size, cudaMemcpyHostToDevice),
            "copying a weight");
        !status) {
      return status;
    }
    offset += size;
  }
  return std::unique_ptr<LinearWeight>(
      std::make_unique<CudaLinearWeight>(out_features, in_features, std::move(memory)));
}

Status LinearRunner::make(const Key& key, Product& product) const {
  const cudaDataType type = element_type(dtype_);
  const auto layout = [](cublasLtMatrixLayout_t& to, cudaDataType t, int64_t rows, int64_t cols,
                         int64_t stride) {
    return blas_status(cublasLtMatrixLayoutCreate(&to, t, static_cast<uint64_t>(rows),
                                                  static_cast<uint64_t>(cols), stride),
                       "cuBLASLt");
  };
  Status status = layout(product.weight, type, key.in_features, key.out_features, key.in_features);
  if (status.ok()) status = layout(product.x, type, key.in_features, key.rows, key.x_stride);
  if (status.ok()) {
    status = layout(product.out, CUDA_R_32F, key.out_features, key.rows, key.out_stride);
  }
  if (!status) return status;
  cublasLtMatmulPreference_t preference = nullptr;
  status = blas_status(cublasLtMatmulPreferenceCreate(&preference), "cuBLASLt");
  if (!status) return status;
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    if (status.ok()) {
      status = blas_status(
          cublasLtMatmulPreferenceSetAttribute(preference, attribute, &value, sizeof value),
          "cuBLASLt");
    }
  };
  const uint64_t workspace = kWorkspaceBytes;
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, key.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, key.alignment);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, key.alignment);
  cublasLtMatmulHeuristicResult_t result{};
  int count = 0;
  if (status.ok()) {
    status = blas_status(
        cublasLtMatmulAlgoGetHeuristic(handle_, operation_, product.weight, product.x, product.out,
                                       product.out, preference, 1, &result, &count),
        "choosing a product's algorithm");
  }
  cublasLtMatmulPreferenceDestroy(preference);
  if (!status) return status;
  if (count == 0) {
    return failed_precondition("cuBLASLt has no product for " + std::to_string(key.rows) +
                               " rows of " + std::to_string(key.in_features) + " by " +
                               std::to_string(key.out_features));
  }
  product.algorithm = result.algo;
  return {};
}

Expected<const LinearRunner::Product*> LinearRunner::find(const Key& key) {
  const auto known = products_.find(key);
  if (known != products_.end()) return known->second.get();
  auto product = std::make_unique<Product>();
  if (Status status = make(key, *product); !status) return status;
  return products_.emplace(key, std::move(product)).first->second.get();
}

Status LinearRunner::run(const CudaLinearWeight& weight, const TensorView& x, const TensorView& out,
                         bool accumulate, cudaStream_t stream) {
  if (x.rows == 0 || weight.out_features() == 0) return {};
  const Expected<const Product*> product =
      find({weight.out_features(), weight.in_features(), x.rows, x.row_stride, out.row_stride,
            std::min(alignment_of(x), alignment_of(out))});
  if (!product) return product.status();
  const float alpha = 1.0F;
  const float beta = accumulate ? 1.0F : 0.0F;
  return blas_status(
      cublasLtMatmul(handle_, operation_, &alpha, weight.data(), (*product)->weight, x.data,
                     (*product)->x, &beta, out.data, (*product)->out, out.data, (*product)->out,
                     &(*product)->algorithm, workspace_.data(), kWorkspaceBytes, stream),
      "a linear layer");
}

}  // namespace anyslot::cuda
