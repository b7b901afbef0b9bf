#include "backend/ops_test_support.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace anyslot::ops_test {

namespace {

Expected<std::unique_ptr<Backend>> open_backend(const BackendCase& backend_case) {
  if (backend_case.is_reference) return create_reference_backend(backend_case.options);
  if (backend_case.is_cuda) return create_cuda_backend(backend_case.options);
#ifdef ANYSLOT_HAS_CPU_BACKEND
  return create_cpu_backend(backend_case.options);
#else
  return not_found("backend " + backend_case.name + " is not in this build");
#endif
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const BackendCase& backend_case) {
  return out << backend_case.name;
}

std::vector<BackendCase> backend_cases() {
  std::vector<BackendCase> cases;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16, DType::kFloat16}) {
    const std::string suffix = std::string("_").append(dtype_name(dtype));
    cases.push_back({"reference" + suffix, true, {dtype, 1, ""}});
#ifdef ANYSLOT_HAS_CUDA_BACKEND
    cases.push_back({"cuda" + suffix, false, {dtype, 1, ""}, true});
    if (dtype != DType::kFloat32) {
      cases.push_back({"cuda_sm_80" + suffix, false, {dtype, 1, "sm_80"}, true});
    }
#endif
    if (dtype == DType::kFloat16) continue;  // the CPU has no kernels for it
#ifdef ANYSLOT_HAS_CPU_BACKEND
    for (const std::string isa : {"avx2", "avx512", "avx512_bf16"}) {
      cases.push_back({"cpu_" + isa + suffix, false, {dtype, 2, isa}});
    }
    cases.push_back({"cpu_one_thread" + suffix, false, {dtype, 1, ""}});
#endif
  }
  return cases;
}

std::vector<BackendCase> kv_cases() {
  std::vector<BackendCase> cases = backend_cases();
  for (const BackendCase& backend_case : backend_cases()) {
    if (!backend_case.is_cuda && backend_case.options.dtype == DType::kFloat16) continue;
    cases.push_back(backend_case);
    cases.back().name += "_kv_fp8";
    cases.back().kv_dtype = DType::kFloat8E4M3;
  }
  return cases;
}

std::string case_name(const testing::TestParamInfo<BackendCase>& info) { return info.param.name; }

double rounding_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return std::ldexp(1.0, -24);
    case DType::kBFloat16:
      return std::ldexp(1.0, -8);
    case DType::kFloat16:
      return std::ldexp(1.0, -11);
    case DType::kFloat8E4M3:
      return std::ldexp(1.0, -4);
  }
  return 0;
}

double underflow_of(DType dtype) {
  if (dtype == DType::kFloat8E4M3) return std::ldexp(1.0, -10);
  return dtype == DType::kFloat16 ? std::ldexp(1.0, -25) : std::ldexp(1.0, -126);
}

double attention_error_of(DType dtype) {
  return dtype == DType::kFloat32 ? 1e-5 : 4 * rounding_of(dtype);
}

std::vector<float> rounded(std::vector<float> values, DType dtype) {
  for (float& value : values) {
    const float exact = value;
    store_element(&value, dtype, 0, exact);
    value = load_element(&value, dtype, 0);
  }
  return values;
}

std::vector<float> Random::normal(int64_t count) {
  std::normal_distribution<float> distribution;
  std::vector<float> values(count);
  for (float& value : values) value = distribution(engine_);
  return values;
}

Tensor::Tensor(Backend& backend, int64_t rows, int64_t cols, DType dtype, int64_t padding)
    : view_{nullptr, dtype, rows, cols, cols + padding} {
  auto buffer = backend.allocate(static_cast<size_t>(rows * (cols + padding)) * dtype_size(dtype));
  if (!buffer) {
    ADD_FAILURE() << buffer.status().message();
    return;
  }
  buffer_ = std::move(buffer).value();
  view_.data = buffer_->data();
}

Tensor::Tensor(Backend& backend, int64_t rows, int64_t cols, DType dtype,
               std::span<const float> values, int64_t padding)
    : Tensor(backend, rows, cols, dtype, padding) {
  if (!buffer_) return;
  std::vector<std::byte> bytes(buffer_->size_bytes());
  TensorView host = view_;
  host.data = bytes.data();
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < cols; ++c) {
      store_element(host.row(r), dtype, c, values[r * cols + c]);
    }
  }
  const Status status = buffer_->write(bytes);
  EXPECT_TRUE(status.ok()) << status.message();
}

std::vector<float> Tensor::values() const {
  std::vector<float> values;
  if (!buffer_) return values;
  std::vector<std::byte> bytes(buffer_->size_bytes());
  const Status status = buffer_->read(bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  TensorView host = view_;
  host.data = bytes.data();
  for (int64_t r = 0; r < host.rows; ++r) {
    for (int64_t c = 0; c < host.cols; ++c) {
      values.push_back(load_element(host.row(r), host.dtype, c));
    }
  }
  return values;
}

void expect_within(std::span<const float> actual, std::span<const float> expected,
                   std::span<const float> bounds) {
  ASSERT_EQ(actual.size(), expected.size());
  ASSERT_EQ(actual.size(), bounds.size());
  int failures = 0;
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::abs(actual[i] - expected[i]) <= bounds[i]) continue;
    if (++failures > 5) continue;
    ADD_FAILURE() << "element " << i << " of " << actual.size() << " is " << actual[i]
                  << ", must be " << expected[i] << " within " << bounds[i];
  }
  EXPECT_EQ(failures, 0);
}

void expect_near(std::span<const float> actual, std::span<const float> expected, double relative,
                 double absolute) {
  std::vector<float> bounds;
  for (const float value : expected) {
    bounds.push_back(static_cast<float>(relative * std::abs(value) + absolute));
  }
  expect_within(actual, expected, bounds);
}

void expect_rows_near(std::span<const float> actual, std::span<const float> expected, int64_t cols,
                      double relative) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t begin = 0; begin < actual.size(); begin += cols) {
    double error = 0;
    double length = 0;
    for (size_t i = begin; i < begin + cols; ++i) {
      const double difference = double{actual[i]} - expected[i];
      error += difference * difference;
      length += double{expected[i]} * expected[i];
    }
    EXPECT_TRUE(std::sqrt(error) <= relative * std::sqrt(length))
        << "row " << begin / cols << ": error " << std::sqrt(error) << " of length "
        << std::sqrt(length) << ", may be " << relative << " of it";
  }
}

RopeParameters rope_parameters(int rotary_dim, double theta, double attention_factor) {
  RopeParameters parameters;
  parameters.attention_factor = attention_factor;
  for (int j = 0; j < rotary_dim / 2; ++j) {
    parameters.inv_freq.push_back(std::pow(theta, -2.0 * j / rotary_dim));
  }
  return parameters;
}

std::vector<float> export_values(const KvStorage& storage, BlockId block) {
  const DType dtype = storage.shape().dtype;
  std::vector<std::byte> bytes(storage.shape().block_bytes());
  const Status status = storage.export_block(block, bytes);
  EXPECT_TRUE(status.ok()) << status.message();
  std::vector<float> values(bytes.size() / dtype_size(dtype));
  for (size_t i = 0; i < values.size(); ++i) values[i] = load_element(bytes.data(), dtype, i);
  return values;
}

void import_values(KvStorage& storage, BlockId block, std::span<const float> values) {
  const DType dtype = storage.shape().dtype;
  std::vector<std::byte> bytes(storage.shape().block_bytes());
  for (size_t i = 0; i < values.size(); ++i) store_element(bytes.data(), dtype, i, values[i]);
  const Status status = storage.import_block(block, bytes);
  EXPECT_TRUE(status.ok()) << status.message();
}

int64_t canonical_index(const KvShape& shape, int layer, int part, int kv_head, int64_t token) {
  const int64_t head = (int64_t{layer} * 2 + part) * shape.num_kv_heads + kv_head;
  return (head * kBlockSize + token) * shape.head_dim;
}

void OpsTest::SetUp() {
  auto opened = open_backend(GetParam());
  if (GetParam().is_cuda && opened.status().code() == StatusCode::kFailedPrecondition) {
    GTEST_SKIP() << opened.status().message();
  }
  ASSERT_TRUE(opened.ok()) << opened.status().message();
  backend_ = std::move(opened).value();
  const std::string& isa = GetParam().options.max_isa;
  if (!isa.empty() && backend_->description().find(" " + isa + " kernels") == std::string::npos) {
    GTEST_SKIP() << "this processor has no " << isa << ": " << backend_->description();
  }
  oracle_ = create_reference_backend({DType::kFloat32, 1, ""});
  ASSERT_EQ(backend_->activation_dtype(), dtype());
}

double OpsTest::attention_error(bool has_raw_keys) const {
  const double error = attention_error_of(dtype());
  if (kv_dtype() == dtype()) return error;
  constexpr double kWeightError = 2.2e-4;  // twice that of exp2
  return error + kWeightError + (has_raw_keys ? rounding_of(kv_dtype()) : 0);
}

std::unique_ptr<KvStorage> OpsTest::storage_of(Backend& owner, const KvShape& shape) {
  auto storage = owner.create_kv_storage(shape);
  if (!storage) {
    ADD_FAILURE() << storage.status().message();
    return nullptr;
  }
  return std::move(storage).value();
}

}  // namespace anyslot::ops_test
