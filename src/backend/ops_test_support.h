#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <ostream>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "backend/ops.h"

// What the operator tests share. An operation under test gets inputs that are rounded as its dtype
// asks; the oracle, the reference backend in float32, gets the same numbers and rounds nothing, so
// an error bound is the rounding of the result plus what float32 arithmetic may lose.

#define ASSERT_OK(expression)                       \
  do {                                              \
    const Status status_ = (expression);            \
    ASSERT_TRUE(status_.ok()) << status_.message(); \
  } while (false)

namespace anyslot::ops_test {

struct BackendCase {
  std::string name;  // reference_float32, cpu_avx2_bfloat16
  bool is_reference = false;
  BackendOptions options;
  bool is_cuda = false;
  std::optional<DType> kv_dtype = {};  // unset: that of options
};
std::ostream& operator<<(std::ostream& out, const BackendCase& backend_case);

/// Every backend in this build, once per dtype and, for the CPU, per instruction set.
std::vector<BackendCase> backend_cases();
/// Those, and the backends that keep KV in fp8_e4m3 too.
std::vector<BackendCase> kv_cases();
std::string case_name(const testing::TestParamInfo<BackendCase>& info);

/// Largest relative error of rounding to dtype, and, of numbers too small for that, the absolute
/// one.
double rounding_of(DType dtype);
double underflow_of(DType dtype);
/// Of a row that attention gives, relative to its length: Q, the weights and the output may be
/// rounded, each by half of rounding_of on average.
double attention_error_of(DType dtype);
std::vector<float> rounded(std::vector<float> values, DType dtype);

/// Reproducible numbers.
class Random {
 public:
  explicit Random(uint32_t seed) : engine_(seed) {}
  std::vector<float> normal(int64_t count);
  int pick(int low, int high) { return std::uniform_int_distribution(low, high)(engine_); }

 private:
  std::mt19937 engine_;
};

/// A matrix in memory of a backend. `padding`: elements between its rows.
class Tensor {
 public:
  Tensor(Backend& backend, int64_t rows, int64_t cols, DType dtype, int64_t padding = 0);
  Tensor(Backend& backend, int64_t rows, int64_t cols, DType dtype, std::span<const float> values,
         int64_t padding = 0);

  const TensorView& view() const { return view_; }
  operator const TensorView&() const { return view_; }  // NOLINT(google-explicit-constructor)
  std::vector<float> values() const;                    // [rows * cols]

 private:
  std::unique_ptr<DeviceBuffer> buffer_;
  TensorView view_;
};

/// |actual[i] - expected[i]| <= bound[i] for all i; NaN fails.
void expect_within(std::span<const float> actual, std::span<const float> expected,
                   std::span<const float> bounds);
/// Bounds of relative * |expected[i]| + absolute.
void expect_near(std::span<const float> actual, std::span<const float> expected, double relative,
                 double absolute);
/// Each row's error, as a vector, is at most `relative` of the expected row's length; NaN fails.
void expect_rows_near(std::span<const float> actual, std::span<const float> expected, int64_t cols,
                      double relative);

RopeParameters rope_parameters(int rotary_dim, double theta = 10000.0,
                               double attention_factor = 1.0);

/// A KV storage's canonical bytes of one block as float32, and back.
std::vector<float> export_values(const KvStorage& storage, BlockId block);
void import_values(KvStorage& storage, BlockId block, std::span<const float> values);
/// Where [layer][K, V][kv_head][token][0] lies in them. part: 0 for K, 1 for V.
int64_t canonical_index(const KvShape& shape, int layer, int part, int kv_head, int64_t token);

inline constexpr uint32_t kSeed = 20240611;

class OpsTest : public testing::TestWithParam<BackendCase> {
 protected:
  void SetUp() override;

  Backend& backend() { return *backend_; }
  Backend& oracle() { return *oracle_; }
  DType dtype() const { return GetParam().options.dtype; }
  DType kv_dtype() const { return GetParam().kv_dtype.value_or(dtype()); }
  /// attention_error_of(dtype()), and what KV of a narrower type adds: coarser weights, and raw
  /// keys that are rounded again when they are turned.
  double attention_error(bool has_raw_keys) const;
  std::unique_ptr<KvStorage> storage_of(Backend& owner, const KvShape& shape);

  Random random_{kSeed};  // every test starts from the same seed

 private:
  std::unique_ptr<Backend> backend_;
  std::unique_ptr<Backend> oracle_;
};

}  // namespace anyslot::ops_test
