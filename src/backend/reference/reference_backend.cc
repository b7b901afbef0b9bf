#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>
#include <numbers>
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

double activated(Activation activation, double x) {
  if (activation == Activation::kSilu) return x / (1 + std::exp(-x));
  const double inner = std::sqrt(2 * std::numbers::inv_pi) * (x + 0.044715 * x * x * x);
  return x / 2 * (1 + std::tanh(inner));
}

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
      : dtype_(options.dtype), int8_weights_(options.int8_weights) {}

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
  Status gated(Activation activation, const TensorView& gate_up, const TensorView& out) override;
  Status gather_sampled(const TensorView& x, const TensorView& out) override;
  Status download(const TensorView& x, std::span<float> out) override;

 private:
  std::vector<float> stored_row(const TensorView& part, int64_t row) const;

  DType dtype_;
  bool int8_weights_;
  StepRows step_;
  std::vector<int64_t> windows_;
};

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
    return values;
  }
  for (float& value : values) {
    const float exact = value;
    store_element(&value, dtype_, 0, exact);
    value = load_element(&value, dtype_, 0);
  }
  return values;
}

Expected<std::unique_ptr<LinearWeight>> ReferenceBackend::load_linear(
    std::span<const TensorView> parts) {
  const Expected<StackedShape> shape = stacked_shape(parts);
  if (!shape) return shape.status();
  std::vector<float> values;
  for (const TensorView& part : parts) {
    for (int64_t r = 0; r < part.rows; ++r) {
      for (const float element : stored_row(part, r)) values.push_back(element);
    }
  }
  return std::unique_ptr<LinearWeight>(std::make_unique<ReferenceLinearWeight>(
      shape->out_features, shape->in_features, std::move(values)));
}

Expected<std::unique_ptr<KvStorage>> ReferenceBackend::create_kv_storage(const KvShape& shape) {
  if (Status status = check_kv_shape(shape); !status) return status;
  try {
    return std::unique_ptr<KvStorage>(std::make_unique<ReferenceKvStorage>(shape));
  } catch (const std::bad_alloc&) {
    return resource_exhausted("no memory for " + std::to_string(shape.num_blocks) +
                              " KV blocks of " + std::to_string(shape.block_bytes()) + " bytes");
  }
}

Status ReferenceBackend::begin_step(const StepPlan& plan, std::span<const int64_t> windows) {
  step_.begin(plan);
  windows_.assign(windows.begin(), windows.end());
  return {};
}

Status ReferenceBackend::end_step() {
  step_.end();
  return {};
}

Status ReferenceBackend::copy_blocks(KvStorage& storage, std::span<const BlockCopy> copies,
                                     std::span<const RopeTable* const> rope) {
  if (Status status = check_copies(copies, rope, storage.shape()); !status) return status;
  reference::copy_blocks(static_cast<ReferenceKvStorage&>(storage), copies, rope);
  return {};
}

Status ReferenceBackend::embed(const TensorView& table, const TensorView& out) {
  if (Status status = step_.check_embed(table, out); !status) return status;
  for (int64_t r = 0; r < out.rows; ++r) {
    store_row(out, r, 0, load_row(table, step_.plan().rows[r].token_id));
  }
  return {};
}

Status ReferenceBackend::rms_norm(const TensorView& x, const float* weight, float epsilon,
                                  const TensorView& out) {
  if (Status status = check_rms_norm(x, out, dtype_); !status) return status;
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
  if (Status status = check_linear(weight, x, out, dtype_); !status) return status;
  const auto& rows = static_cast<const ReferenceLinearWeight&>(weight);
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
  if (Status status = step_.check_write_kv(storage.shape(), layer, spec, k, v); !status) {
    return status;
  }
  reference::write_kv(static_cast<ReferenceKvStorage&>(storage), layer, spec, step_.plan().rows, k,
                      v);
  return {};
}

Status ReferenceBackend::attention(const KvStorage& storage, int layer, const AttentionSpec& spec,
                                   RowSet rows, const TensorView& q, const TensorView& out) {
  if (Status status = step_.check_attention(storage.shape(), layer, spec, rows, q, out, dtype_);
      !status) {
    return status;
  }
  if (std::ranges::find(windows_, spec.window) == windows_.end()) {
    return unknown_window(spec.window);
  }
  reference::attention(static_cast<const ReferenceKvStorage&>(storage), layer, spec, step_.plan(),
                       step_.of(rows), q, out);
  return {};
}

Status ReferenceBackend::gated(Activation activation, const TensorView& gate_up,
                               const TensorView& out) {
  if (Status status = check_gated(gate_up, out, dtype_); !status) return status;
  for (int64_t r = 0; r < out.rows; ++r) {
    std::vector<double> gate = load_row(gate_up, r, 0, out.cols);
    const std::vector<double> up = load_row(gate_up, r, out.cols, out.cols);
    for (size_t c = 0; c < up.size(); ++c) gate[c] = activated(activation, gate[c]) * up[c];
    store_row(out, r, 0, gate);
  }
  return {};
}

Status ReferenceBackend::gather_sampled(const TensorView& x, const TensorView& out) {
  if (Status status = step_.check_gather_sampled(x, out); !status) return status;
  const std::vector<int32_t>& sampled = step_.of(RowSet::kSampled);
  for (int64_t k = 0; k < out.rows; ++k) store_row(out, k, 0, load_row(x, sampled[k]));
  return {};
}

Status ReferenceBackend::download(const TensorView& x, std::span<float> out) {
  if (Status status = check_download(x, out); !status) return status;
  for (int64_t r = 0; r < x.rows; ++r) std::memcpy(&out[r * x.cols], x.row(r), x.row_bytes());
  return {};
}

}  // namespace
}  // namespace reference

std::unique_ptr<Backend> create_reference_backend(const BackendOptions& options) {
  return std::make_unique<reference::ReferenceBackend>(options);
}

}  // namespace anyslot
