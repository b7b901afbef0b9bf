#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/rope.h"
#include "base/dtype.h"
#include "base/function_ref.h"
#include "base/tensor_view.h"
#include "plan/step_plan.h"

namespace anyslot {

/// Memory that a backend's operations can use, 64-byte aligned; zero-filled when allocated.
class DeviceBuffer {
 public:
  virtual ~DeviceBuffer() = default;
  virtual void* data() = 0;
  virtual size_t size_bytes() const = 0;

  /// Copy between the buffer's begin and host memory, after the operations before it. Fails with
  /// kInvalidArgument when the buffer is smaller. As they stand here: for buffers in host memory.
  virtual Status write(std::span<const std::byte> bytes);
  virtual Status read(std::span<std::byte> bytes);
};

/// A weight matrix [out_features, in_features] in the form the backend multiplies with.
class LinearWeight {
 public:
  virtual ~LinearWeight() = default;
  int64_t out_features() const { return out_features_; }
  int64_t in_features() const { return in_features_; }

 protected:
  LinearWeight(int64_t out_features, int64_t in_features)
      : out_features_(out_features), in_features_(in_features) {}

 private:
  int64_t out_features_;
  int64_t in_features_;
};

/// The attention of one layer.
struct AttentionSpec {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  float scale = 1.0F;               // of the scores
  int64_t window = 0;               // 0: none
  const RopeTable* rope = nullptr;  // owned by the model
  float score_cap = 0.0F;           // scores are cap * tanh(score / cap); 0: as they are
};

/// What some models compute, and not every backend.
struct ModelNeeds {
  bool score_caps = false;
  bool experts = false;
  int head_dim = 0;  // 0: any
};

/// What gates an MLP: silu(x) = x / (1 + e^-x), or gelu(x) in its form with tanh, x / 2 * (1 +
/// tanh(sqrt(2 / pi) * (x + 0.044715 x^3))).
enum class Activation : uint8_t { kSilu, kGeluTanh };

/// How the experts of a row are chosen: those of its largest logits, the first of equal ones. Their
/// shares are the softmax of all logits or, normalized, of those chosen.
struct ExpertChoice {
  int per_row = 1;
  bool normalized = false;
};

/// Which rows go to which experts. Keeps its memory from step to step.
struct ExpertRows {
  std::vector<int32_t> rows;         // grouped by expert, ascending within each
  std::vector<float> shares;         // of each
  std::vector<int32_t> begins;       // [num_experts + 1], into rows
  std::vector<int32_t> chosen;       // [num_rows, per_row]: experts, in the order of their logits
  std::vector<float> chosen_shares;  // of them
};

/// Which rows of the step an operation runs on.
enum class RowSet : uint8_t { kAll, kSampled };

struct BackendOptions {
  DType dtype = DType::kBFloat16;  // of weights, of activations that enter a product, and of KV
  int num_threads = 1;
  std::string max_isa;  // see EngineConfig::max_isa
  /// Linear layers keep whole numbers times a scale per output channel (int8_row.h), not dtype.
  bool int8_weights = false;
};

/// The memory of a device that has its own.
struct MemoryInfo {
  int64_t free_bytes = 0;
  int64_t total_bytes = 0;
};

/// Which operations a record holds; see Backend::run_recorded.
struct RecordKey {
  const void* owner = nullptr;  // who runs them, and on whose buffers
  const KvStorage* storage = nullptr;
  int64_t num_rows = 0;
};

/// The operations of a forward pass: the only virtual boundary, per operation. Matrices are
/// row-major, one row per token. "float32" tensors carry the residual stream, Q, and results of
/// products; "activation" tensors are of activation_dtype() and enter products. Calls of one
/// backend come from one thread.
class Backend {
 public:
  virtual ~Backend() = default;

  virtual std::string_view name() const = 0;
  /// One line for people: kernels and libraries in use.
  virtual std::string description() const = 0;
  virtual DType activation_dtype() const = 0;
  /// nullopt: the backend works in the host's memory.
  virtual Expected<std::optional<MemoryInfo>> device_memory() const {
    return std::optional<MemoryInfo>();
  }

  /// Fails with kFailedPrecondition, naming the need, where the backend lacks it.
  virtual Status check_needs(const ModelNeeds& needs) const {
    static_cast<void>(needs);
    return {};
  }

  virtual Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) = 0;

  /// Packs parts stacked along out_features: each [out_i, in], any DType, in host memory.
  virtual Expected<std::unique_ptr<LinearWeight>> load_linear(
      std::span<const TensorView> parts) = 0;

  /// Fails with kFailedPrecondition for a head_dim that the kernels do not serve (named in the
  /// message).
  virtual Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) = 0;

  /// Takes in a step: its rows, and a work plan for each window (0: none). The plan must outlive
  /// end_step.
  virtual Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) = 0;
  virtual Status end_step() = 0;

  /// Runs BlockCopy orders in all layers; copies turn keys with `rope`, one table per layer. What
  /// the destination holds from num_tokens on is unspecified.
  virtual Status copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                             std::span<const RopeTable* const> rope) = 0;

  /// out[r] = table[token_id of row r]. table: [vocab, hidden] in any DType, host memory; out:
  /// float32.
  virtual Status embed(const TensorView& table, const TensorView& out) = 0;

  /// out = x / sqrt(mean(x^2) + epsilon) * weight. x: float32; weight: float32 [cols]; out:
  /// activation.
  virtual Status rms_norm(const TensorView& x, const float* weight, float epsilon,
                          const TensorView& out) = 0;

  /// The same within each part of weight.size() columns of a row, in place. x: float32, whose
  /// columns are a multiple of that. As it stands here, and in the three operations below: for
  /// matrices in host memory.
  virtual Status rms_norm_parts(const TensorView& x, std::span<const float> weight, float epsilon);

  /// x[r] += bias. x: float32; bias: host memory, [cols].
  virtual Status add_bias(const TensorView& x, std::span<const float> bias);

  /// out = factor * x. x: float32; out: float32, which may be x, or activation.
  virtual Status scale(const TensorView& x, float factor, const TensorView& out);

  /// out += factor * x. float32.
  virtual Status add_scaled(const TensorView& x, float factor, const TensorView& out);

  /// out = x weight^T, or out += x weight^T. x: activation [n, in_features]; out: float32 [n,
  /// out_features].
  virtual Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                        bool accumulate) = 0;

  /// Turns K by each row's write_angle and stores K and V at its write_slot. k, v: float32
  /// [num_rows, num_kv_heads * head_dim], of all rows of the step. The first 2 * rope.num_pairs()
  /// dimensions of a head are turned, the rest stand.
  virtual Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                          const TensorView& k, const TensorView& v) = 0;

  /// Softmax attention of the step's rows (or of the sampled ones) over their placements. q:
  /// float32, not turned, [n, num_heads * head_dim]; out: activation, same shape. A row that sees
  /// nothing gives 0.
  virtual Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                           RowSet rows, const TensorView& q, const TensorView& out) = 0;

  /// out = activation(gate) * up. gate_up: float32 [n, 2 * intermediate], gate first; out:
  /// activation type [n, intermediate].
  virtual Status gated(Activation activation, const TensorView& gate_up, const TensorView& out) = 0;

  /// x = cap * tanh(x / cap). float32; cap above 0. As it stands here, and in the operations on
  /// experts' rows: for matrices in host memory.
  virtual Status soft_cap(const TensorView& x, float cap);

  /// logits: float32 [n, num_experts]. Waits for the operations before it.
  virtual Status choose_experts(const TensorView& logits, const ExpertChoice& choice,
                                ExpertRows& chosen);

  /// out[k] = x[rows[k]]. x, out: activation.
  virtual Status gather_rows(const TensorView& x, std::span<const int32_t> rows,
                             const TensorView& out);

  /// out[rows[k]] += shares[k] * x[k]. float32; `rows` ascends.
  virtual Status add_rows(const TensorView& x, std::span<const int32_t> rows,
                          std::span<const float> shares, const TensorView& out);

  /// out[k] = x[row index of the k-th sampled row]. float32.
  virtual Status gather_sampled(const TensorView& x, const TensorView& out) = 0;

  /// Copies a float32 matrix to host memory, waiting for the operations before it.
  virtual Status download(const TensorView& x, std::span<float> out) = 0;

  /// The column of each row's largest element, the first of equal ones; -1 for a row with an
  /// element that is not finite. x: float32; out: host memory. Waits for the operations before it.
  /// As it stands here: for matrices in host memory.
  virtual Status argmax(const TensorView& x, std::span<int32_t> out);

  /// Runs `work`: operations of the step, all of whose rows are sampled, that are the same for each
  /// step of that key, on the same buffers and weights. A backend may record them and run the
  /// record instead of `work` in later steps.
  virtual Status run_recorded(const RecordKey& key, FunctionRef<Status()> work) {
    static_cast<void>(key);
    return work();
  }
};

/// The scalar oracle: every operation as plainly as it can be written.
std::unique_ptr<Backend> create_reference_backend(const BackendOptions& options);
/// oneDNN and this project's attention kernels.
Expected<std::unique_ptr<Backend>> create_cpu_backend(const BackendOptions& options);
/// What check_needs of such a backend says, known in any build and on any machine.
Status check_cpu_needs(const ModelNeeds& needs);
/// cuBLASLt and this project's kernels, on the first NVIDIA GPU. Fails with kFailedPrecondition
/// when the build or the machine has none.
Expected<std::unique_ptr<Backend>> create_cuda_backend(const BackendOptions& options);
/// As check_cpu_needs.
Status check_cuda_needs(const ModelNeeds& needs);

}  // namespace anyslot
