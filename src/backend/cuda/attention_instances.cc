#include "backend/cuda/attention_instances.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

namespace anyslot::cuda {

namespace {

template <typename T, int kHeadDim>
constexpr AttentionInstance instance(DType kv_dtype) {
  return {kv_dtype, kHeadDim, TensorCoreAttention<T, kHeadDim>::prepare,
          TensorCoreAttention<T, kHeadDim>::launch};
}

constexpr AttentionInstance kInstances[] = {instance<__nv_bfloat16, 64>(DType::kBFloat16),
                                            instance<__nv_bfloat16, 128>(DType::kBFloat16),
                                            instance<__half, 64>(DType::kFloat16),
                                            instance<__half, 128>(DType::kFloat16),
                                            instance<__nv_fp8_e4m3, 64>(DType::kFloat8E4M3),
                                            instance<__nv_fp8_e4m3, 128>(DType::kFloat8E4M3)};

}  // namespace

const AttentionInstance* find_attention_instance(DType kv_dtype, int head_dim) {
  for (const AttentionInstance& instance : kInstances) {
    if (instance.kv_dtype == kv_dtype && instance.head_dim == head_dim) return &instance;
  }
  return nullptr;
}

Status prepare_attention() {
  for (const AttentionInstance& instance : kInstances) {
    if (Status status = instance.prepare(); !status) return status;
  }
  return {};
}

bool uses_wgmma(const AttentionArgs& args, bool wgmma) {
  return wgmma && args.page_maps != nullptr && !args.raw_keys;
}

bool fills_machine(int num_wide, int num_kv_heads, int num_processors) {
  return num_wide * num_kv_heads > num_processors * 3 / 2;
}

}  // namespace anyslot::cuda
