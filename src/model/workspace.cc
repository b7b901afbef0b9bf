#include "model/workspace.h"

#include <algorithm>
#include <utility>

namespace anyslot {

Status ActivationBuffer::reserve(Backend& backend, int64_t rows) {
  if (rows <= capacity_ || cols_ == 0) return {};
  const int64_t capacity = std::max(rows, capacity_ + capacity_ / 2);
  buffer_.reset();
  capacity_ = 0;
  Expected<std::unique_ptr<DeviceBuffer>> buffer =
      backend.allocate(static_cast<size_t>(capacity * cols_) * dtype_size(dtype_));
  if (!buffer) return buffer.status();
  buffer_ = std::move(*buffer);
  capacity_ = capacity;
  return {};
}

TensorView ActivationBuffer::view(int64_t rows) const {
  return {buffer_ == nullptr ? nullptr : buffer_->data(), dtype_, rows, cols_, cols_};
}

Workspace::Workspace(const ActivationWidths& widths, DType activation)
    : residual(DType::kFloat32, widths.hidden),
      sampled_residual(DType::kFloat32, widths.hidden),
      normed(activation, widths.hidden),
      qkv(DType::kFloat32, widths.q + 2 * widths.kv),
      sampled_q(DType::kFloat32, widths.q),
      attended(activation, widths.q),
      gate_up(DType::kFloat32, 2 * widths.intermediate),
      gated(activation, widths.intermediate),
      branch(DType::kFloat32, widths.adds_directly ? 0 : widths.hidden),
      router_logits(DType::kFloat32, widths.num_experts),
      expert_in(activation, widths.num_experts > 0 ? widths.hidden : 0),
      expert_out(DType::kFloat32, widths.num_experts > 0 ? widths.hidden : 0),
      logits(DType::kFloat32, widths.vocab) {}

Status Workspace::reserve(Backend& backend, int64_t num_rows, int64_t num_sampled) {
  for (ActivationBuffer* buffer : {&residual, &normed, &qkv, &attended, &gate_up, &gated, &branch,
                                   &router_logits, &expert_in, &expert_out}) {
    if (Status status = buffer->reserve(backend, num_rows); !status) return status;
  }
  for (ActivationBuffer* buffer : {&sampled_residual, &sampled_q}) {
    if (Status status = buffer->reserve(backend, num_sampled); !status) return status;
  }
  return logits.reserve(backend, std::min(num_sampled, kLogitsRows));
}

}  // namespace anyslot
