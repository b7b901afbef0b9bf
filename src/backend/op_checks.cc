#include "backend/op_checks.h"

#include <algorithm>
#include <functional>
#include <string>

namespace anyslot {

namespace {

/// The layer exists and its heads are those of the pool.
Status check_spec(const AttentionSpec& spec, const KvShape& shape, int layer) {
  if (layer < 0 || layer >= shape.num_layers) {
    return invalid_argument("layer " + std::to_string(layer) + " of a storage of " +
                            std::to_string(shape.num_layers) + " layers");
  }
  if (spec.num_kv_heads != shape.num_kv_heads || spec.head_dim != shape.head_dim) {
    return invalid_argument("heads of the layer and of the KV storage differ");
  }
  if (spec.num_heads <= 0 || spec.num_heads % spec.num_kv_heads != 0) {
    return invalid_argument("num_heads must be a multiple of num_kv_heads");
  }
  if (2 * spec.rope->num_pairs() > spec.head_dim) {
    return invalid_argument("the rotary dimension exceeds head_dim");
  }
  return {};
}

/// All rows write inside of the pool.
Status check_write_slots(std::span<const Row> rows, const KvShape& shape) {
  const int64_t num_slots = shape.num_blocks * kBlockSize;
  for (const Row& row : rows) {
    if (row.write_slot >= 0 && row.write_slot < num_slots) continue;
    return invalid_argument("slot " + std::to_string(row.write_slot) + " is outside of the " +
                            std::to_string(num_slots) + " slots of the KV pool");
  }
  return {};
}

/// All rows have a row in the embedding table.
Status check_token_ids(std::span<const Row> rows, const TensorView& table) {
  for (const Row& row : rows) {
    if (row.token_id >= 0 && row.token_id < table.rows) continue;
    return invalid_argument("token id " + std::to_string(row.token_id) + " is outside of the " +
                            std::to_string(table.rows) + " rows of the embedding");
  }
  return {};
}

/// All are rows of a matrix of so many.
Status check_indices(std::span<const int32_t> rows, int64_t num_rows) {
  for (const int32_t row : rows) {
    if (row >= 0 && row < num_rows) continue;
    return invalid_argument("row " + std::to_string(row) + " of a matrix of " +
                            std::to_string(num_rows) + " rows");
  }
  return {};
}

}  // namespace

Status check_tensor(std::string_view name, const TensorView& x, int64_t rows, int64_t cols,
                    DType dtype) {
  if (x.rows == rows && x.cols == cols && x.dtype == dtype) return {};
  const auto describe = [](int64_t r, int64_t c, DType type) {
    return std::string("[") + std::to_string(r) + ", " + std::to_string(c) + "] " +
           std::string(dtype_name(type));
  };
  return invalid_argument("tensor " + std::string(name) + " is " +
                          describe(x.rows, x.cols, x.dtype) + ", must be " +
                          describe(rows, cols, dtype));
}

Expected<StackedShape> stacked_shape(std::span<const TensorView> parts) {
  if (parts.empty()) return invalid_argument("a linear weight needs at least one part");
  StackedShape shape{0, parts[0].cols};
  for (const TensorView& part : parts) {
    if (part.cols != shape.in_features) return invalid_argument("parts differ in in_features");
    if (part.rows <= 0 || part.cols <= 0) return invalid_argument("a part of a weight is empty");
    shape.out_features += part.rows;
  }
  return shape;
}

Status check_kv_shape(const KvShape& shape) {
  if (shape.num_layers > 0 && shape.num_kv_heads > 0 && shape.head_dim > 0 &&
      shape.num_blocks >= 0) {
    return {};
  }
  return invalid_argument("a KV storage needs layers, heads and a head_dim");
}

Status check_copies(std::span<const BlockCopy> copies, std::span<const RopeTable* const> rope,
                    const KvShape& shape) {
  if (static_cast<int>(rope.size()) != shape.num_layers) {
    return invalid_argument("copy_blocks needs one rope table per layer");
  }
  for (const RopeTable* table : rope) {
    if (2 * table->num_pairs() > shape.head_dim) {
      return invalid_argument("the rotary dimension exceeds head_dim");
    }
  }
  for (const BlockCopy& copy : copies) {
    if (std::min(copy.src, copy.dst) >= 0 && std::max(copy.src, copy.dst) < shape.num_blocks) {
      continue;
    }
    return invalid_argument("a copy from block " + std::to_string(copy.src) + " to block " +
                            std::to_string(copy.dst) + " leaves the pool of " +
                            std::to_string(shape.num_blocks) + " blocks");
  }
  return {};
}

Status unknown_window(int64_t window) {
  return invalid_argument("window " + std::to_string(window) + " was not announced to begin_step");
}

Status check_rms_norm(const TensorView& x, const TensorView& out, DType activation) {
  Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, x.rows, x.cols, activation) : status;
}

Status check_rms_norm_parts(const TensorView& x, std::span<const float> weight) {
  const auto part = static_cast<int64_t>(weight.size());
  if (part == 0 || x.cols % part != 0) {
    return invalid_argument("rows of " + std::to_string(x.cols) + " columns have no parts of " +
                            std::to_string(part));
  }
  return check_tensor("x", x, x.rows, x.cols, DType::kFloat32);
}

Status check_add_bias(const TensorView& x, std::span<const float> bias) {
  return check_tensor("x", x, x.rows, static_cast<int64_t>(bias.size()), DType::kFloat32);
}

Status check_scale(const TensorView& x, const TensorView& out, DType activation) {
  Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32);
  const DType type = out.dtype == DType::kFloat32 ? out.dtype : activation;
  return status.ok() ? check_tensor("out", out, x.rows, x.cols, type) : status;
}

Status check_add_scaled(const TensorView& x, const TensorView& out) {
  Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, x.rows, x.cols, DType::kFloat32) : status;
}

Status check_linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                    DType activation) {
  Status status = check_tensor("x", x, x.rows, weight.in_features(), activation);
  if (!status) return status;
  return check_tensor("out", out, x.rows, weight.out_features(), DType::kFloat32);
}

Status check_gated(const TensorView& gate_up, const TensorView& out, DType activation) {
  Status status = check_tensor("gate_up", gate_up, out.rows, 2 * out.cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, out.rows, out.cols, activation) : status;
}

Status check_soft_cap(const TensorView& x, float cap) {
  if (!(cap > 0)) return invalid_argument("a soft cap must be above 0");
  return check_tensor("x", x, x.rows, x.cols, DType::kFloat32);
}

Status check_choose_experts(const TensorView& logits, const ExpertChoice& choice) {
  if (choice.per_row < 1 || choice.per_row > logits.cols) {
    return invalid_argument("a row cannot have " + std::to_string(choice.per_row) + " of " +
                            std::to_string(logits.cols) + " experts");
  }
  return check_tensor("logits", logits, logits.rows, logits.cols, DType::kFloat32);
}

Status check_gather_rows(const TensorView& x, std::span<const int32_t> rows, const TensorView& out,
                         DType activation) {
  if (Status status = check_indices(rows, x.rows); !status) return status;
  Status status = check_tensor("x", x, x.rows, x.cols, activation);
  if (!status) return status;
  return check_tensor("out", out, static_cast<int64_t>(rows.size()), x.cols, activation);
}

Status check_add_rows(const TensorView& x, std::span<const int32_t> rows,
                      std::span<const float> shares, const TensorView& out) {
  if (shares.size() != rows.size()) return invalid_argument("each row needs a share");
  if (Status status = check_indices(rows, out.rows); !status) return status;
  if (std::ranges::adjacent_find(rows, std::greater_equal()) != rows.end()) {
    return invalid_argument("rows must ascend, so that none stands twice");
  }
  Status status =
      check_tensor("x", x, static_cast<int64_t>(rows.size()), out.cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, out.rows, out.cols, DType::kFloat32) : status;
}

Status check_download(const TensorView& x, std::span<const float> out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (static_cast<int64_t>(out.size()) == x.rows * x.cols) return {};
  return invalid_argument("download: the destination has " + std::to_string(out.size()) +
                          " elements, must have " + std::to_string(x.rows * x.cols));
}

void StepRows::begin(const StepPlan& plan) {
  plan_ = &plan;
  all_.clear();
  sampled_.clear();
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    all_.push_back(static_cast<int32_t>(r));
    if (plan.rows[r].sample) sampled_.push_back(static_cast<int32_t>(r));
  }
}

Status StepRows::check_begun() const {
  return plan_ != nullptr ? Status() : invalid_argument("no step: begin_step comes first");
}

Status StepRows::check_embed(const TensorView& table, const TensorView& out) const {
  if (Status status = check_begun(); !status) return status;
  Status status = check_tensor("out", out, num_rows(), table.cols, DType::kFloat32);
  return status.ok() ? check_token_ids(plan_->rows, table) : status;
}

Status StepRows::check_write_kv(const KvShape& shape, int layer, const AttentionSpec& spec,
                                const TensorView& k, const TensorView& v) const {
  if (Status status = check_begun(); !status) return status;
  if (Status status = check_spec(spec, shape, layer); !status) return status;
  const int64_t cols = int64_t{spec.num_kv_heads} * spec.head_dim;
  Status status = check_tensor("k", k, num_rows(), cols, DType::kFloat32);
  if (status.ok()) status = check_tensor("v", v, num_rows(), cols, DType::kFloat32);
  return status.ok() ? check_write_slots(plan_->rows, shape) : status;
}

Status StepRows::check_attention(const KvShape& shape, int layer, const AttentionSpec& spec,
                                 RowSet rows, const TensorView& q, const TensorView& out,
                                 DType activation) const {
  if (Status status = check_begun(); !status) return status;
  if (Status status = check_spec(spec, shape, layer); !status) return status;
  const int64_t num = rows == RowSet::kAll ? num_rows() : num_sampled();
  const int64_t cols = int64_t{spec.num_heads} * spec.head_dim;
  Status status = check_tensor("q", q, num, cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, num, cols, activation) : status;
}

Status StepRows::check_gather_sampled(const TensorView& x, const TensorView& out) const {
  if (Status status = check_begun(); !status) return status;
  Status status = check_tensor("x", x, num_rows(), x.cols, DType::kFloat32);
  return status.ok() ? check_tensor("out", out, num_sampled(), x.cols, DType::kFloat32) : status;
}

}  // namespace anyslot
