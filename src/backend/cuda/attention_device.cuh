#pragma once

#include <cstdint>
#include <type_traits>

#include "backend/cuda/attention_args.h"
#include "backend/cuda/elements.cuh"
#include "base/block.h"

namespace anyslot::cuda {

/// The rotation by the sum of both angles.
__device__ inline float2 compose(float2 a, float2 b) {
  return {a.x * b.x - a.y * b.y, a.y * b.x + a.x * b.y};
}

/// Where a pair stands in a rotation of raw keys: eight lanes that read two pairs each of the eight
/// chunks of 16 bytes of a key's half read places side by side.
__device__ inline int key_pair_place(int pair, int num_pairs) {
  if (num_pairs % 8 != 0) return pair;
  return (pair % 8 / 2 * (num_pairs / 8) + pair / 8) * 2 + pair % 2;
}

/// K of one head of a block of the layer; V is `value_offset` further.
template <typename T>
__device__ inline const T* key_page(const AttentionArgs& args, int block, int kv_head) {
  const int64_t page = int64_t{kBlockSize} * args.head_dim;
  return static_cast<const T*>(args.kv) + (int64_t{block} * 2 * args.num_kv_heads + kv_head) * page;
}
__device__ inline int64_t value_offset(const AttentionArgs& args) {
  return int64_t{kBlockSize} * args.head_dim * args.num_kv_heads;
}

/// Writes element `at` of the outputs of attention to KV of type T, or two from there on.
template <typename T>
__device__ inline void store_output(const AttentionArgs& args, int64_t at, float x) {
  if constexpr (!std::is_same_v<T, fp8>) {
    static_cast<T*>(args.out)[at] = from_float<T>(x);
  } else if (args.out_dtype == DType::kBFloat16) {
    static_cast<bf16*>(args.out)[at] = from_float<bf16>(x);
  } else if (args.out_dtype == DType::kFloat16) {
    static_cast<fp16*>(args.out)[at] = from_float<fp16>(x);
  } else {
    static_cast<float*>(args.out)[at] = x;
  }
}
template <typename T>
__device__ inline void store_outputs(const AttentionArgs& args, int64_t at, float low, float high) {
  const bool bf16_out =
      std::is_same_v<T, fp8> ? args.out_dtype == DType::kBFloat16 : std::is_same_v<T, bf16>;
  *reinterpret_cast<uint32_t*>(static_cast<uint16_t*>(args.out) + at) =
      bf16_out ? pack<bf16>(low, high) : pack<fp16>(low, high);
}

/// Lets blocks of the merge take what room is left beside those of attention; they wait for the
/// partials there. All blocks of attention are running by then, since there are no more than fit.
__device__ inline void let_merge_start() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}
__device__ inline void wait_for_partials() {
#if __CUDA_ARCH__ >= 900
  asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

__device__ inline PlanCounts counts_of(const AttentionArgs& args) {
  return args.recorded_counts == nullptr ? args.counts : *args.recorded_counts;
}

/// How row r of an item sees a range.
__device__ inline int range_start(const AttentionArgs& args, const DeviceRange& range, int r) {
  return range.starts < 0 ? range.start : args.row_starts[range.starts + r];
}
__device__ inline int range_turn(const AttentionArgs& args, const DeviceRange& range, int r) {
  return range.starts < 0 ? range.turn : args.row_turns[range.starts + r];
}

/// Tokens [first, end) of a range that a row at `distance` (position - start) sees.
struct Visible {
  int first;
  int end;
};
__device__ inline Visible visible_tokens(const DeviceRange& range, int distance, int window) {
  return {window > 0 ? max(range.begin, distance - window + 1) : range.begin,
          min(range.end, distance + 1)};
}

}  // namespace anyslot::cuda
