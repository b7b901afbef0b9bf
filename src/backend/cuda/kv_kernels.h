#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "anyslot/status.h"
#include "base/tensor_view.h"
#include "plan/step_plan.h"

// Angles, and what fills the KV pool; see ops.h for what each operation computes.

namespace anyslot::cuda {

/// Angles in device memory.
struct AngleList {
  const int32_t* angles = nullptr;
  int64_t count = 0;
  int64_t num_keys = 0;
  /// In device memory, count and num_keys; unless null, those above are void.
  const int64_t* recorded_counts = nullptr;
  int64_t num_scaled = 0;  // how many of the first take the factor
  int64_t first_key = 0;   // the num_keys angles from here on are of raw keys: see key_pair_place
};
/// Cosines and sines of angles[i] * inv_freq[j], formed in float64, times `factor` for i <
/// num_scaled. out: [count, num_pairs], but key_pair_place tells the places of raw keys' pairs.
Status launch_rotations(const AngleList& angles, double factor, const double* inv_freq,
                        int num_pairs, float2* out, cudaStream_t stream);

/// Where K and V of the step's rows go.
struct KvWrite {
  void* layer = nullptr;  // [block][K, V][kv_head][token][head_dim]
  DType dtype = DType::kBFloat16;
  int num_kv_heads = 0;
  int head_dim = 0;
  int num_pairs = 0;
  const int64_t* slots = nullptr;     // of each row
  const float2* rotations = nullptr;  // of each row
};
Status launch_write_kv(const KvWrite& write, const TensorView& k, const TensorView& v,
                       cudaStream_t stream);

/// The pool that copies run in, and each layer's rotation.
struct KvCopy {
  void* pool = nullptr;
  size_t layer_bytes = 0;
  DType dtype = DType::kBFloat16;
  int num_layers = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  const double* inv_freq = nullptr;  // [num_layers, head_dim / 2]
  const int* num_pairs = nullptr;    // of each layer
};
/// copies: in device memory.
Status launch_copy_blocks(const KvCopy& copy, const BlockCopy* copies, int num_copies,
                          cudaStream_t stream);

}  // namespace anyslot::cuda
