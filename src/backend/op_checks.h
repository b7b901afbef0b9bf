#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "backend/kv_storage.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "plan/step_plan.h"

// What every backend asks of the arguments of its operations. Failures are kInvalidArgument.

namespace anyslot {

Status check_tensor(std::string_view name, const TensorView& x, int64_t rows, int64_t cols,
                    DType dtype);

/// What all parts of a linear layer's weight have in common, and their rows together.
struct StackedShape {
  int64_t out_features = 0;
  int64_t in_features = 0;
};
Expected<StackedShape> stacked_shape(std::span<const TensorView> parts);

Status check_kv_shape(const KvShape& shape);

/// All copies stay inside of the pool, and each layer has a rope that fits its heads.
Status check_copies(std::span<const BlockCopy> copies, std::span<const RopeTable* const> rope,
                    const KvShape& shape);

Status unknown_window(int64_t window);

/// Operations that run on rows of any kind. activation: the type of what enters a product.
Status check_rms_norm(const TensorView& x, const TensorView& out, DType activation);
Status check_rms_norm_parts(const TensorView& x, std::span<const float> weight);
Status check_add_bias(const TensorView& x, std::span<const float> bias);
Status check_scale(const TensorView& x, const TensorView& out, DType activation);
Status check_add_scaled(const TensorView& x, const TensorView& out);
Status check_linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                    DType activation);
Status check_gated(const TensorView& gate_up, const TensorView& out, DType activation);
Status check_soft_cap(const TensorView& x, float cap);
Status check_choose_experts(const TensorView& logits, const ExpertChoice& choice);
Status check_gather_rows(const TensorView& x, std::span<const int32_t> rows, const TensorView& out,
                         DType activation);
Status check_add_rows(const TensorView& x, std::span<const int32_t> rows,
                      std::span<const float> shares, const TensorView& out);
Status check_download(const TensorView& x, std::span<const float> out);

/// The rows of the step at hand, and what the operations on them ask.
class StepRows {
 public:
  void begin(const StepPlan& plan);
  void end() { plan_ = nullptr; }

  /// Only between begin() and end(), which the checks ensure.
  const StepPlan& plan() const { return *plan_; }
  int64_t num_rows() const { return static_cast<int64_t>(all_.size()); }
  int64_t num_sampled() const { return static_cast<int64_t>(sampled_.size()); }
  bool all_are_sampled() const { return sampled_.size() == all_.size(); }
  /// Indices into the plan's rows, ascending.
  const std::vector<int32_t>& of(RowSet rows) const {
    return rows == RowSet::kAll ? all_ : sampled_;
  }

  Status check_begun() const;
  Status check_embed(const TensorView& table, const TensorView& out) const;
  Status check_write_kv(const KvShape& shape, int layer, const AttentionSpec& spec,
                        const TensorView& k, const TensorView& v) const;
  Status check_attention(const KvShape& shape, int layer, const AttentionSpec& spec, RowSet rows,
                         const TensorView& q, const TensorView& out, DType activation) const;
  Status check_gather_sampled(const TensorView& x, const TensorView& out) const;

 private:
  const StepPlan* plan_ = nullptr;
  std::vector<int32_t> all_;
  std::vector<int32_t> sampled_;
};

}  // namespace anyslot
