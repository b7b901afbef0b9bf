#include "backend/cuda/attention_runner.h"

#include <algorithm>
#include <cstdint>
#include <numbers>

namespace anyslot::cuda {

namespace {

bool is_aligned(const void* pointer, int64_t stride, size_t element, size_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0 &&
         static_cast<size_t>(stride) * element % alignment == 0;
}

}  // namespace

bool serves_tensor_cores(const AttentionArgs& args) {
  return (args.head_dim == 64 || args.head_dim == 128) && 2 * args.num_pairs == args.head_dim &&
         args.scale_log2 > 0 && is_aligned(args.q, args.q_stride, sizeof(float), 8) &&
         is_aligned(args.out, args.out_stride, sizeof(uint16_t), 4);
}

Status AttentionRunner::run(const AttentionCall& call, cudaStream_t stream) {
  const AttentionSpec& spec = call.spec;
  const auto states = static_cast<size_t>(call.plan.num_partials) * spec.num_heads;
  if (Status status =
          partial_out_.reserve(states * spec.head_dim * sizeof(float), "attention partials");
      !status) {
    return status;
  }
  if (Status status = partial_state_.reserve(states * sizeof(float2), "attention partials");
      !status) {
    return status;
  }
  AttentionArgs args;
  call.data.fill(call.plan, args);
  args.q = static_cast<const float*>(call.q.data);
  args.q_stride = call.q.row_stride;
  args.out = call.out.data;
  args.out_stride = call.out.row_stride;
  args.kv = call.storage.layer(call.layer);
  args.row_rotations = call.rotations.rows;
  args.turn_rotations = call.rotations.turns;
  args.key_rotations = call.rotations.keys;
  args.partial_out = partial_out_.as<float>();
  args.partial_state = partial_state_.as<float2>();
  args.num_heads = spec.num_heads;
  args.num_kv_heads = spec.num_kv_heads;
  args.head_dim = spec.head_dim;
  args.num_pairs = spec.rope->num_pairs();
  args.window = static_cast<int>(spec.window);
  args.scale_log2 = spec.scale * std::numbers::log2e_v<float>;
  if (Status status = launch(call, args, stream); !status) return status;
  return launch_merge(args, call.out.dtype, early_merge_, stream);
}

Status AttentionRunner::launch(const AttentionCall& call, AttentionArgs args,
                               cudaStream_t stream) const {
  const std::vector<int>& up_to = call.plan.items_up_to;
  const int num_items = up_to.empty() ? 0 : up_to.back();
  args.num_items = num_items;
  args.max_rows = static_cast<int>(up_to.size()) - 1;
  if (!tensor_cores_ || call.out.dtype != DType::kBFloat16 || call.plan.has_raw_keys ||
      !serves_tensor_cores(args)) {
    return launch_plain_attention(args, call.out.dtype, stream);
  }
  const int narrow_rows =
      std::min(kNarrowRows / (args.num_heads / args.num_kv_heads), args.max_rows);
  const int num_narrow = up_to.empty() ? 0 : up_to[narrow_rows];
  args.num_items = num_narrow;
  if (Status status = launch_narrow_attention(args, num_processors_, stream); !status)
    return status;
  args.items += num_narrow;
  args.num_items = num_items - num_narrow;
  return launch_wide_attention(args, num_processors_, stream);
}

}  // namespace anyslot::cuda
