#include "backend/cuda/attention_runner.h"

#include <bit>
#include <cstdint>
#include <limits>
#include <numbers>

#include "backend/cuda/attention_instances.h"

namespace anyslot::cuda {

namespace {

/// Beyond any position: as good as none.
constexpr int64_t kLongestWindow = std::numeric_limits<int32_t>::max();

bool is_aligned(const void* pointer, int64_t stride, size_t element, size_t alignment) {
  return reinterpret_cast<uintptr_t>(pointer) % alignment == 0 &&
         static_cast<size_t>(stride) * element % alignment == 0;
}

/// Whether the tensor-core kernels serve such heads at all: they turn whole ones.
bool serves_tensor_cores(const AttentionArgs& args) {
  return dtype_size(args.out_dtype) == sizeof(uint16_t) && 2 * args.num_pairs == args.head_dim &&
         args.scale_log2 > 0 && is_aligned(args.q, args.q_stride, sizeof(float), 8) &&
         is_aligned(args.out, args.out_stride, sizeof(uint16_t), 4);
}

}  // namespace

Status AttentionRunner::open() { return prepare_attention(); }

Status AttentionRunner::reserve(int64_t num_partials, int num_heads, int head_dim) {
  // Rooms grow by powers of two: each growth stops the device and ends recorded steps.
  const size_t states = std::bit_ceil(static_cast<size_t>(num_partials * num_heads));
  Status status = partial_out_.reserve(states * head_dim * sizeof(float), "attention partials");
  if (status.ok()) status = partial_state_.reserve(states * sizeof(float2), "attention partials");
  return status;
}

Status AttentionRunner::run(const AttentionCall& call, cudaStream_t stream) {
  const AttentionSpec& spec = call.spec;
  if (Status status = reserve(call.plan.num_partials, spec.num_heads, spec.head_dim); !status) {
    return status;
  }
  AttentionArgs args;
  call.data.fill(call.plan, args);
  args.counts = plan_counts(call.plan, spec.num_heads / spec.num_kv_heads);
  if (call.recording) {
    args.recorded_counts = call.data.recorded_counts(call.plan);
    args.max_merges = static_cast<int>(call.out.rows);
  }
  args.q = static_cast<const float*>(call.q.data);
  args.q_stride = call.q.row_stride;
  args.out = call.out.data;
  args.out_stride = call.out.row_stride;
  args.out_dtype = call.out.dtype;
  args.kv_dtype = call.storage.shape().dtype;
  args.kv = call.storage.layer(call.layer);
  args.page_maps = call.storage.page_maps(call.layer);
  args.row_rotations = call.rotations.rows;
  args.turn_rotations = call.rotations.turns;
  args.partial_out = partial_out_.as<float>();
  args.partial_state = partial_state_.as<float2>();
  args.num_heads = spec.num_heads;
  args.num_kv_heads = spec.num_kv_heads;
  args.head_dim = spec.head_dim;
  args.num_pairs = spec.rope->num_pairs();
  args.window = spec.window > kLongestWindow ? 0 : static_cast<int>(spec.window);
  args.scale_log2 = spec.scale * std::numbers::log2e_v<float>;
  const PositionedQ positioned{nullptr, call.q.rows, call.step_rows};
  if (Status status = launch(args, positioned, stream); !status) return status;
  if (call.plan.num_merges == 0) return {};
  return launch_merge(args, early_merge_, stream);
}

Status AttentionRunner::launch(const AttentionArgs& args, PositionedQ positioned,
                               cudaStream_t stream) {
  const AttentionInstance* instance =
      tensor_cores_ ? find_attention_instance(args.kv_dtype, args.head_dim) : nullptr;
  if (instance == nullptr || !serves_tensor_cores(args)) {
    used_plain_kernel_ = true;
    return launch_plain_attention(args, stream);
  }
  if (!uses_wgmma(args, wgmma_) &&
      fills_machine(args.counts.num_wide, args.num_kv_heads, num_processors_)) {
    const auto elements = static_cast<size_t>(positioned.num_rows) * args.num_heads * args.head_dim;
    Status status =
        positioned_q_.reserve(std::bit_ceil(elements * sizeof(float)), "turned queries");
    if (!status) return status;
    positioned.q = positioned_q_.as<float>();
  }
  return instance->launch(args, {positioned, num_processors_, wgmma_, stream});
}

}  // namespace anyslot::cuda
