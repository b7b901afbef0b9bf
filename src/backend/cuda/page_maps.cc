#include "backend/cuda/page_maps.h"

#include <cuda.h>
#include <cuda_runtime_api.h>

#include <string>
#include <utility>
#include <vector>

#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

static_assert(sizeof(CUtensorMap) == PageMaps::kBytesEach);

constexpr int kHalf = PageMaps::kHeadDim / 2;  // 128 bytes: as wide as the widest swizzle

/// The driver's function, which the runtime finds, so that nothing links the driver.
Expected<decltype(&cuTensorMapEncodeTiled)> find_encoder() {
  void* function = nullptr;
  cudaDriverEntryPointQueryResult result{};
  const Status status =
      cuda_status(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &function, 12000,
                                                   cudaEnableDefault, &result),
                  "looking for cuTensorMapEncodeTiled");
  if (!status) return status;
  if (result != cudaDriverEntryPointSuccess || function == nullptr) {
    return failed_precondition(
        "the NVIDIA driver has no cuTensorMapEncodeTiled: update it to one of CUDA 12 or later, or "
        "use --isa sm_80");
  }
  return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(function);
}

}  // namespace

Expected<PageMaps> PageMaps::create(const KvShape& shape, std::byte* pool) {
  PageMaps maps;
  if (shape.head_dim != kHeadDim || dtype_size(shape.dtype) != sizeof(uint16_t)) return maps;
  const auto encoder = find_encoder();
  if (!encoder) return encoder.status();

  const CUtensorMapDataType type = shape.dtype == DType::kFloat16
                                       ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                       : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16;
  const size_t row_bytes = kHeadDim * sizeof(uint16_t);
  const size_t layer_bytes = shape.block_bytes() / shape.num_layers * shape.num_blocks;
  const cuuint64_t strides[] = {row_bytes / 2, row_bytes, row_bytes * kBlockSize};
  const cuuint32_t box[] = {kHalf, 1, kBlockSize, 1};
  const cuuint32_t steps[] = {1, 1, 1, 1};
  std::vector<CUtensorMap> all;
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    for (cuuint64_t tokens = 1; tokens <= kBlockSize; ++tokens) {
      const cuuint64_t sizes[] = {kHalf, 2, tokens, layer_bytes / strides[2]};
      const CUresult result =
          (*encoder)(&all.emplace_back(), type, 4, pool + layer * layer_bytes, sizes, strides, box,
                     steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                     CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
      if (result != CUDA_SUCCESS) {
        return internal_error("the driver refused a tensor map of the KV pool (error " +
                              std::to_string(result) + ")");
      }
    }
  }
  const size_t bytes = all.size() * sizeof(CUtensorMap);
  Status status = maps.memory_.reserve(bytes, "tensor maps of the KV pool");
  if (status.ok()) {
    status = cuda_status(cudaMemcpy(maps.memory_.data(), all.data(), bytes, cudaMemcpyHostToDevice),
                         "copying the tensor maps of the KV pool");
  }
  if (!status) return status;
  return maps;
}

}  // namespace anyslot::cuda
