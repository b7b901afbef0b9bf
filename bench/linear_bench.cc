#include "linear_bench.h"

#include <algorithm>
#include <cmath>
#include <exception>
#include <limits>
#include <span>
#include <utility>

#include "backend/int8_row.h"
#include "base/random_normal.h"
#include "cli/statistics.h"
#include "model/workspace.h"

namespace anyslot::bench {

namespace {

constexpr uint64_t kSeed = 2026;
constexpr int64_t kBeyondCaches = int64_t{256} << 20;  // bytes
constexpr int64_t kFewRows = 64;  // with more, weights are read once for much work

float element(const TensorView& x, int64_t row, int64_t col) {
  return x.dtype == DType::kFloat32 ? x.row_as<float>(row)[col]
                                    : bf16_to_float(x.row_as<bf16_t>(row)[col]);
}

/// A step that only says that work begins, so that the backend's threads are awake.
StepPlan step_of(int64_t num_rows) {
  StepPlan plan;
  plan.rows.resize(static_cast<size_t>(num_rows));
  plan.sequences.push_back({0, static_cast<int32_t>(num_rows), 0, 0});
  return plan;
}

}  // namespace

std::vector<LinearShape> linear_shapes(const ModelConfig& model) {
  const int64_t q = int64_t{model.num_heads} * model.head_dim;
  const int64_t kv = int64_t{model.num_kv_heads} * model.head_dim;
  return {{"qkv", q + 2 * kv, model.hidden_size, 0},
          {"o", model.hidden_size, q, 0},
          {"gate_up", 2 * model.intermediate_size, model.hidden_size, 0},
          {"down", model.hidden_size, model.intermediate_size, 0},
          {"lm_head", model.vocab_size, model.hidden_size, Workspace::kLogitsRows}};
}

Expected<std::unique_ptr<LinearBench>> LinearBench::create(Backend& backend,
                                                           const LinearShape& shape,
                                                           const LinearBenchOptions& options) {
  std::unique_ptr<LinearBench> bench(new LinearBench(backend, shape, options));
  if (Status status = bench->load_weights(); !status.ok()) return status;
  return bench;
}

Status LinearBench::load_weights() {
  const auto size = static_cast<size_t>(shape_.out * shape_.in);
  values_ = std::make_unique_for_overwrite<bf16_t[]>(size);
  RandomNormal(1.0 / std::sqrt(static_cast<double>(shape_.in)))
      .fill(kSeed, 0, std::span<bf16_t>(values_.get(), size));
  const TensorView view{values_.get(), DType::kBFloat16, shape_.out, shape_.in, shape_.in};
  const int64_t bytes = shape_.out * shape_.in * static_cast<int64_t>(sizeof(bf16_t));
  const int64_t count = std::clamp<int64_t>((kBeyondCaches + bytes - 1) / bytes, 1, 64);
  for (int64_t i = 0; i < count; ++i) {
    Expected<std::unique_ptr<LinearWeight>> weight = backend_.load_linear({&view, 1});
    if (!weight) return weight.status();
    weights_.push_back(*std::move(weight));
  }
  return {};
}

Status LinearBench::reserve_rows(int64_t num_rows) {
  const DType type = backend_.activation_dtype();
  const auto x_size = static_cast<size_t>(num_rows * shape_.in);
  auto x = backend_.allocate(x_size * dtype_size(type));
  if (!x) return x.status();
  auto out = backend_.allocate(static_cast<size_t>(num_rows * shape_.out) * sizeof(float));
  if (!out) return out.status();
  x_buffer_ = *std::move(x);
  out_buffer_ = *std::move(out);
  x_ = {x_buffer_->data(), type, num_rows, shape_.in, shape_.in};
  out_ = {out_buffer_->data(), DType::kFloat32, num_rows, shape_.out, shape_.out};
  std::vector<bf16_t> values(x_size);
  RandomNormal(1.0).fill(kSeed + 1, 0, values);
  if (type == DType::kFloat32) {
    std::ranges::transform(values, x_.row_as<float>(0), bf16_to_float);
  } else {
    std::ranges::copy(values, x_.row_as<bf16_t>(0));
  }
  return {};
}

/// The products with the first weights, within a step, as a model runs them. A product of one row
/// before them wakes the backend's threads.
Expected<double> LinearBench::run_products(size_t num_weights) {
  const StepPlan step = step_of(x_.rows);
  if (Status status = backend_.begin_step(step, {}); !status.ok()) return status;
  Status status =
      backend_.linear(*weights_.back(), x_.row_range(0, 1), out_.row_range(0, 1), false);
  const auto start = std::chrono::steady_clock::now();
  for (size_t w = 0; w < num_weights && status.ok(); ++w) {
    status = backend_.linear(*weights_[w], x_, out_, false);
  }
  const double seconds = seconds_since(start);
  const Status end = backend_.end_step();
  if (!status.ok()) return status;
  if (!end.ok()) return end;
  return seconds;
}

Status LinearBench::measure(size_t num_weights, OnednnProducts& onednn, LinearResult& result) {
  std::vector<double> onednn_times;
  const auto times = time_runs(options_.limits, [&](int) -> Expected<double> {
    Expected<double> seconds = run_products(num_weights);
    onednn_times.push_back(onednn.run());
    return seconds;
  });
  if (!times) return times.status();
  result.seconds = cli::median(*times) / static_cast<double>(num_weights);
  result.onednn_seconds = cli::median(onednn_times) / static_cast<double>(num_weights);
  return {};
}

/// A row of the weight, rounded as the backend keeps it.
std::vector<float> LinearBench::stored_weights(int64_t out_feature) const {
  std::vector<float> row(static_cast<size_t>(shape_.in));
  std::transform(values_.get() + out_feature * shape_.in,
                 values_.get() + (out_feature + 1) * shape_.in, row.begin(), bf16_to_float);
  if (options_.weights == WeightType::kInt8) {
    std::vector<int8_t> numbers(row.size());
    const float scale = quantize_row(row, numbers);
    std::ranges::transform(numbers, row.begin(), [scale](int8_t n) { return scale * n; });
  }
  return row;
}

/// Checks some elements of the first, a middle and the last row.
double LinearBench::largest_error() const {
  constexpr int64_t kChecked = 64;
  double largest = 0;
  for (const int64_t row : {int64_t{0}, x_.rows / 2, x_.rows - 1}) {
    for (int64_t i = 0; i < kChecked; ++i) {
      const int64_t col = i * (shape_.out - 1) / (kChecked - 1);
      const std::vector<float> weights = stored_weights(col);
      double expected = 0;
      for (int64_t k = 0; k < shape_.in; ++k) {
        expected += double{element(x_, row, k)} * weights[static_cast<size_t>(k)];
      }
      const double error = std::abs(element(out_, row, col) - expected);
      if (std::isnan(error)) return std::numeric_limits<double>::infinity();
      largest = std::max(largest, error);
    }
  }
  return largest;
}

Expected<LinearResult> LinearBench::run(int64_t num_rows) {
  if (Status status = reserve_rows(num_rows); !status.ok()) return status;
  const size_t count = num_rows <= kFewRows ? weights_.size() : size_t{1};
  const MatmulShape shape{num_rows, shape_.in, shape_.out};
  LinearResult result;
  try {
    OnednnProducts onednn(std::vector<MatmulShape>(count, shape), options_.type,
                          options_.num_threads);
    if (Status status = measure(count, onednn, result); !status.ok()) return status;
  } catch (const std::exception& error) {
    return internal_error(std::string("oneDNN: ") + error.what());
  }
  result.operations = shape.operations();
  result.weight_bytes = static_cast<double>(shape_.out * shape_.in) *
                        static_cast<double>(options_.weights == WeightType::kInt8
                                                ? sizeof(int8_t)
                                                : dtype_size(backend_.activation_dtype()));
  result.error = largest_error();
  return result;
}

}  // namespace anyslot::bench
