#pragma once

#include <cstdint>
#include <memory>

#include "anyslot/status.h"
#include "backend/ops.h"

namespace anyslot {

/// A matrix in a backend's memory that is allocated for the most rows seen and used again.
class ActivationBuffer {
 public:
  ActivationBuffer() = default;
  ActivationBuffer(DType dtype, int64_t cols) : dtype_(dtype), cols_(cols) {}

  /// Makes room for `rows`, at least by half more than before, so that slow growth does not mean an
  /// allocation per step. What was in it is lost when it grows.
  Status reserve(Backend& backend, int64_t rows);
  /// The first `rows` rows; rows at most what was reserved.
  TensorView view(int64_t rows) const;

 private:
  DType dtype_ = DType::kFloat32;
  int64_t cols_ = 0;
  int64_t capacity_ = 0;  // rows
  std::unique_ptr<DeviceBuffer> buffer_;
};

/// Widths, in elements, of the activations of a model.
struct ActivationWidths {
  int64_t hidden = 0;
  int64_t q = 0;
  int64_t kv = 0;  // of K alone
  int64_t intermediate = 0;
  int64_t num_experts = 0;
  int64_t vocab = 0;
  bool adds_directly = true;  // see DecoderLayer
};

/// Everything that a forward pass keeps between operations. n: rows of the step; m: sampled rows.
struct Workspace {
  Workspace() = default;
  Workspace(const ActivationWidths& widths, DType activation);

  /// Rows of the logits that exist on the device at a time: with a vocabulary of 128k a step that
  /// samples all of 2048 rows would need 1 GB.
  static constexpr int64_t kLogitsRows = 64;

  Status reserve(Backend& backend, int64_t num_rows, int64_t num_sampled);

  ActivationBuffer residual;          // float32 [n, hidden]
  ActivationBuffer sampled_residual;  // float32 [m, hidden]
  ActivationBuffer normed;            // activation [n, hidden]
  ActivationBuffer qkv;        // float32 [n, q + 2 kv]; the last layer keeps K and V alone in it
  ActivationBuffer sampled_q;  // float32 [m, q]
  ActivationBuffer attended;   // activation [n, q]
  ActivationBuffer gate_up;    // float32 [n, 2 intermediate]
  ActivationBuffer gated;      // activation [n, intermediate]
  ActivationBuffer branch;     // float32 [n, hidden]; empty where all layers add directly
  ActivationBuffer router_logits;  // float32 [n, num_experts]; these three for experts alone
  ActivationBuffer expert_in;      // activation [n, hidden]: the rows of one expert
  ActivationBuffer expert_out;     // float32 [n, hidden]
  ActivationBuffer logits;         // float32 [min(m, kLogitsRows), vocab]
};

}  // namespace anyslot
