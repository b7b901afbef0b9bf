#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "anyslot/status.h"
#include "backend/attention_plan.h"
#include "base/dtype.h"

namespace anyslot::cuda {

/// A Range of an attention plan as kernels read it. All places are tokens of the span.
struct DeviceRange {
  int32_t blocks = 0;  // where the span's block list begins in AttentionArgs::blocks
  int32_t begin = 0;   // the first and the end of the tokens that some row of the item sees
  int32_t end = 0;
  int32_t start = 0;          // of the placement; unless starts >= 0
  int32_t turn = 0;           // into turn_rotations; unless starts >= 0
  int32_t starts = -1;        // into row_starts and row_turns, one for each row of the item
  int32_t key_rotation = -1;  // raw keys: place of the first block's rotation in turn_rotations
  int32_t min_distance = 0;   // position - start, over the rows of the item
  int32_t max_distance = 0;
};

/// How much of a plan there is, for kernels of a recorded step: it differs from step to step.
struct PlanCounts {
  int32_t num_narrow = 0;  // items for the narrow kernel; those for the wide one follow
  int32_t num_wide = 0;
  int32_t max_rows = 0;  // of an item
  int32_t num_merges = 0;
};

/// What the attention kernels read, all in device memory. Rotations are [n, num_pairs] (cos, sin).
struct AttentionArgs {
  const float* q = nullptr;  // [n, num_heads * head_dim], not turned
  int64_t q_stride = 0;
  void* out = nullptr;
  int64_t out_stride = 0;
  DType out_dtype = DType::kBFloat16;
  DType kv_dtype = DType::kBFloat16;  // that of the outputs, or fp8
  const void* kv = nullptr;           // the layer: [block][K, V][kv_head][token][head_dim]
  const void* page_maps = nullptr;    // of the layer, see PageMaps

  const WorkItem* items = nullptr;
  const DeviceRange* ranges = nullptr;
  const int32_t* rows = nullptr;
  const int32_t* output_rows = nullptr;
  const int32_t* row_starts = nullptr;
  const int32_t* row_turns = nullptr;
  const int32_t* positions = nullptr;  // of the step's rows
  const int32_t* blocks = nullptr;
  const Merge* merges = nullptr;
  const int32_t* slots = nullptr;

  const float2* row_rotations = nullptr;  // of the step's rows, at their position
  // From a row's position to its place before a span. Where there are raw keys, those of the places
  // in a block come first, then of each block's first key: a key takes both.
  const float2* turn_rotations = nullptr;

  float* partial_out = nullptr;     // [num_partials, num_heads, head_dim], not yet divided
  float2* partial_state = nullptr;  // [num_partials, num_heads] (maximum in base 2, sum)

  PlanCounts counts;
  const PlanCounts* recorded_counts = nullptr;  // in device memory; unless null, `counts` is void
  int max_merges = 0;                           // of any step that runs the record
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int num_pairs = 0;
  int window = 0;
  float scale_log2 = 1.0F;  // scores are exponents of 2
  bool raw_keys = false;    // some ranges may have them
};

/// Any head_dim up to 256, any rotary dimension, both key forms.
Status launch_plain_attention(const AttentionArgs& args, cudaStream_t stream);

/// Tokens that the wide kernel and that of sm_90a read at a time.
inline constexpr int kWideStageTokens = 64;
inline constexpr int kHopperStageTokens = 128;
/// Rows x heads that the narrow kernel takes.
inline constexpr int kNarrowRows = 16;
/// Where the wide kernel keeps Q turned by the rows' positions.
struct PositionedQ {
  float* q = nullptr;  // [num_rows, num_heads * head_dim]
  int64_t num_rows = 0;
  const int32_t* step_rows = nullptr;  // of each row of Q, in device memory; nullptr: the same
};
/// How a call is launched.
struct AttentionLaunch {
  PositionedQ positioned;
  int num_processors = 0;
  bool wgmma = false;  // the device runs code of sm_90a
  cudaStream_t stream = nullptr;
};
/// Turns args.q to there.
Status launch_position_q(const AttentionArgs& args, const PositionedQ& positioned,
                         cudaStream_t stream);
/// Whether so many items are those that two blocks of the wide kernel per multiprocessor serve
/// best.
bool fills_machine(int num_wide, int num_kv_heads, int num_processors);

/// early: its blocks may be set up while the kernel before is still running (sm_90 and later).
Status launch_merge(const AttentionArgs& args, bool early, cudaStream_t stream);

}  // namespace anyslot::cuda
