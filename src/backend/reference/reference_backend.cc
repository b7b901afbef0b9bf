#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "backend/int8_row.h"
#include "backend/op_checks.h"
#include "backend/ops.h"
#include "backend/reference/elements.h"
#include "backend/reference/reference_attention.h"
#include "backend/reference/reference_kv_storage.h"

namespace anyslot {

namespace reference {
namespace {

class HostBuffer : public DeviceBuffer {
 public:
  explicit HostBuffer(size_t bytes)
      : units_((bytes + sizeof(Unit) - 1) / sizeof(Unit)), bytes_(bytes) {}
  void* data() override { return units_.data(); }
  size_t size_bytes() const override { return bytes_; }

 private:
  struct alignas(64) Unit {
    std::byte bytes[64];
  };
  std::vector<Unit> units_;
  size_t bytes_;
};

class ReferenceLinearWeight : public LinearWeight {
 public:
  ReferenceLinearWeight(int64_t out_features, int64_t in_features, std::vector<float> rows)
      : LinearWeight(out_features, in_features), values_(std::move(rows)) {}
  const float* row(int64_t r) const { return values_.data() + r * in_features(); }

 private:
  std::vector<float> values_;  // [out_features, in_features]
};

class ReferenceBackend : public Backend {
 public:
  explicit ReferenceBackend(const BackendOptions& options)
      : dtype_(options.dtype == DType::kFloat32 ? DType::kFloat32 : DType::kBFloat16),
        int8_weights_(options.int8_weights) {}

  std::string_view name() const override { return "reference"; }
  std::string description() const override { return "scalar reference, one thread"; }
  DType activation_dtype() const override { return dtype_; }

  Expected<std::unique_ptr<DeviceBuffer>> allocate(size_t bytes) override;
  Expected<std::unique_ptr<LinearWeight>> load_linear(std::span<const TensorView> parts) override;
  Expected<std::unique_ptr<KvStorage>> create_kv_storage(const KvShape& shape) override;
  Status begin_step(const StepPlan& plan, std::span<const int64_t> windows) override;
  Status end_step() override;
  Status copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                     std::span<const RopeTable* const> rope) override;
  Status embed(const TensorView& table, const TensorView& out) override;
  Status rms_norm(const TensorView& x, const float* weight, float epsilon,
                  const TensorView& out) override;
  Status linear(const LinearWeight& weight, const TensorView& x, const TensorView& out,
                bool accumulate) override;
  Status write_kv(KvStorage& storage, int layer, const AttentionSpec& spec, const TensorView& k,
                  const TensorView& v) override;
  Status attention(const KvStorage& storage, int layer, const AttentionSpec& spec, RowSet rows,
                   const TensorView& q, const TensorView& out) override;
  Status gated_silu(const TensorView& gate_up, const TensorView& out) override;
  Status gather_sampled(const TensorView& x, const TensorView& out) override;
  Status download(const TensorView& x, std::span<float> out) override;

 private:
  int64_t num_rows() const { return static_cast<int64_t>(all_rows_.size()); }
  int64_t num_sampled() const { return static_cast<int64_t>(sampled_rows_.size()); }
  Status check_step() const;
  std::vector<float> stored_row(const TensorView& part, int64_t row) const;

  DType dtype_;
  bool int8_weights_;
  const StepPlan* step_ = nullptr;
  std::vector<int64_t> windows_;
  std::vector<int32_t> all_rows_;
  std::vector<int32_t> sampled_rows_;
};

Status ReferenceBackend::check_step() const {
  return step_ != nullptr ? Status() : invalid_argument("no step: begin_step comes first");
}

Expected<std::unique_ptr<DeviceBuffer>> ReferenceBackend::allocate(size_t bytes) {
  try {
    return std::unique_ptr<DeviceBuffer>(std::make_unique<HostBuffer>(bytes));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for a buffer of " + std::to_string(bytes) + " bytes");
  }
}

/// A row of a weight, rounded to the type in which weights are stored.
std::vector<float> ReferenceBackend::stored_row(const TensorView& part, int64_t row) const {
  std::vector<float> values;
  for (const double element : load_row(part, row)) values.push_back(static_cast<float>(element));
  if (int8_weights_) {
    std::vector<int8_t> numbers(values.size());
    const float scale = quantize_row(values, numbers);
    std::ranges::transform(numbers, values.begin(), [scale](int8_t n) { return scale * n; });
  } else if (dtype_ == DType::kBFloat16) {
    for (float& value : values) value = bf16_to_float(float_to_bf16(value));
  }
  return values;
}

Expected<std::unique_ptr<LinearWeight>> ReferenceBackend::load_linear(
    std::span<const TensorView> parts) {
  if (parts.empty()) return invalid_argument("a linear weight needs at least one part");
  const int64_t in_features = parts[0].cols;
  int64_t out_features = 0;
  std::vector<float> values;
  for (const TensorView& part : parts) {
    if (part.cols != in_features) return invalid_argument("parts differ in in_features");
    out_features += part.rows;
    for (int64_t r = 0; r < part.rows; ++r) {
      for (const float element : stored_row(part, r)) values.push_back(element);
    }
  }
  return std::unique_ptr<LinearWeight>(
      std::make_unique<ReferenceLinearWeight>(out_features, in_features, std::move(values)));
}

Expected<std::unique_ptr<KvStorage>> ReferenceBackend::create_kv_storage(const KvShape& shape) {
  if (shape.dtype == DType::kFloat16) return failed_precondition("KV of float16 is not served");
  if (shape.num_layers <= 0 || shape.num_kv_heads <= 0 || shape.head_dim <= 0 ||
      shape.num_blocks < 0) {
    return invalid_argument("a KV storage needs layers, heads and a head_dim");
  }
  try {
    return std::unique_ptr<KvStorage>(std::make_unique<ReferenceKvStorage>(shape));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for " + std::to_string(shape.num_blocks) +
                              " KV blocks of " + std::to_string(shape.block_bytes()) + " bytes");
  }
}

Status ReferenceBackend::begin_step(const StepPlan& plan, std::span<const int64_t> windows) {
  step_ = &plan;
  windows_.assign(windows.begin(), windows.end());
  all_rows_.clear();
  sampled_rows_.clear();
  for (size_t r = 0; r < plan.rows.size(); ++r) {
    all_rows_.push_back(static_cast<int32_t>(r));
    if (plan.rows[r].sample) sampled_rows_.push_back(static_cast<int32_t>(r));
  }
  return {};
}

Status ReferenceBackend::end_step() {
  step_ = nullptr;
  return {};
}

Status ReferenceBackend::copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                                     std::span<const RopeTable* const> rope) {
  if (Status status = check_copies(copies, rope, storage.shape()); !status) return status;
  reference::copy_blocks(static_cast<ReferenceKvStorage&>(storage), copies, rope);
  return {};
}

Status ReferenceBackend::embed(const TensorView& table, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("out", out, num_rows(), table.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_token_ids(step_->rows, table); !status) return status;
  for (int64_t r = 0; r < num_rows(); ++r) {
    store_row(out, r, 0, load_row(table, step_->rows[r].token_id));
  }
  return {};
}

Status ReferenceBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                                  const TensorView& out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, x.rows, x.cols, dtype_); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) {
    std::vector<double> row = load_row(x, r);
    double sum = 0;
    for (const double element : row) sum += element * element;
    const double factor = 1 / std::sqrt(sum / static_cast<double>(x.cols) + epsilon);
    for (size_t c = 0; c < row.size(); ++c) row[c] *= factor * weight[c];
    store_row(out, r, 0, row);
  }
  return {};
}

Status ReferenceBackend::linear(const LinearWeight& weight, const TensorView& x,
                                const TensorView& out, bool accumulate) {
  const auto& rows = static_cast<const ReferenceLinearWeight&>(weight);
  if (Status status = check_tensor("x", x, x.rows, weight.in_features(), dtype_); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, x.rows, weight.out_features(), DType::kFloat32);
      !status) {
    return status;
  }
  for (int64_t r = 0; r < x.rows; ++r) {
    const std::vector<double> in = load_row(x, r);
    for (int64_t o = 0; o < weight.out_features(); ++o) {
      const float* w = rows.row(o);
      double sum = accumulate ? out.row_as<float>(r)[o] : 0.0;
      for (size_t i = 0; i < in.size(); ++i) sum += in[i] * w[i];
      out.row_as<float>(r)[o] = static_cast<float>(sum);
    }
  }
  return {};
}

Status ReferenceBackend::write_kv(KvStorage& storage, int layer, const AttentionSpec& spec,
                                  const TensorView& k, const TensorView& v) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  const int64_t cols = int64_t{spec.num_kv_heads} * spec.head_dim;
  for (const auto& [name, tensor] : {std::pair("k", &k), std::pair("v", &v)}) {
    if (Status status = check_tensor(name, *tensor, num_rows(), cols, DType::kFloat32); !status) {
      return status;
    }
  }
  auto& blocks = static_cast<ReferenceKvStorage&>(storage);
  if (Status status = check_write_slots(step_->rows, blocks.shape()); !status) return status;
  reference::write_kv(blocks, layer, spec, step_->rows, k, v);
  return {};
}

Status ReferenceBackend::attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                                   RowSet rows, const TensorView& q, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_spec(spec, storage.shape(), layer); !status) return status;
  if (std::ranges::find(windows_, spec.window) == windows_.end()) {
    return invalid_argument("window " + std::to_string(spec.window) +
                            " was not announced to begin_step");
  }
  const std::vector<int32_t>& row_indices = rows == RowSet::kAll ? all_rows_ : sampled_rows_;
  const auto num = static_cast<int64_t>(row_indices.size());
  const int64_t cols = int64_t{spec.num_heads} * spec.head_dim;
  if (Status status = check_tensor("q", q, num, cols, DType::kFloat32); !status) return status;
  if (Status status = check_tensor("out", out, num, cols, dtype_); !status) return status;
  reference::attention(static_cast<const ReferenceKvStorage&>(storage), layer, spec, *step_,
                       row_indices, q, out);
  return {};
}

Status ReferenceBackend::gated_silu(const TensorView& gate_up, const TensorView& out) {
  if (Status status = check_tensor("gate_up", gate_up, out.rows, 2 * out.cols, DType::kFloat32);
      !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, out.rows, out.cols, dtype_); !status) return status;
  for (int64_t r = 0; r < out.rows; ++r) {
    std::vector<double> gate = load_row(gate_up, r, 0, out.cols);
    const std::vector<double> up = load_row(gate_up, r, out.cols, out.cols);
    for (size_t c = 0; c < up.size(); ++c) gate[c] = gate[c] / (1 + std::exp(-gate[c])) * up[c];
    store_row(out, r, 0, gate);
  }
  return {};
}

Status ReferenceBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = check_step(); !status) return status;
  if (Status status = check_tensor("x", x, num_rows(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  if (Status status = check_tensor("out", out, num_sampled(), x.cols, DType::kFloat32); !status) {
    return status;
  }
  for (int64_t k = 0; k < num_sampled(); ++k) store_row(out, k, 0, load_row(x, sampled_rows_[k]));
  return {};
}

Status ReferenceBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_tensor("x", x, x.rows, x.cols, DType::kFloat32); !status) return status;
  if (static_cast<int64_t>(out.size()) != x.rows * x.cols) {
    return invalid_argument("download: the destination has the wrong size");
  }
  for (int64_t r = 0; r < x.rows; ++r) std::memcpy(&out[r * x.cols], x.row(r), x.row_bytes());
  return {};
}

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> create_reference_backend(const BackendOptions& options) {
  return std::make_unique<reference::ReferenceBackend>(options);
}

}  // namespace anyslot
