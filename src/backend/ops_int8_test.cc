// Linear layers whose weights are kept as int8.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "backend/ops_test_support.h"

namespace anyslot::ops_test {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class Int8Weights : public OpsTest {
 protected:
  /// [rows, outs]
  std::vector<float> product(const std::vector<float>& w, int64_t outs, const std::vector<float>& x,
                             int64_t rows);
  void check(int64_t rows, int64_t outs, int64_t ins);
};

std::vector<float> Int8Weights::product(const std::vector<float>& w, int64_t outs,
                                        const std::vector<float>& x, int64_t rows) {
  const auto ins = static_cast<int64_t>(w.size()) / outs;
  const Tensor part(oracle(), outs, ins, DType::kFloat32, w);
  auto weight = backend().load_linear(std::vector<TensorView>{part});
  EXPECT_TRUE(weight.ok()) << weight.status().message();
  if (!weight.ok()) return {};
  const Tensor out(backend(), rows, outs, DType::kFloat32);
  const Status status =
      backend().linear(**weight, Tensor(backend(), rows, ins, dtype(), x), out, false);
  EXPECT_TRUE(status.ok()) << status.message();
  return out.values();
}

std::vector<BackendCase> int8_cases() {
  std::vector<BackendCase> cases = backend_cases();
  for (BackendCase& backend_case : cases) backend_case.options.int8_weights = true;
  return cases;
}

/// Against products of the weights rounded here, by the rule: 127 steps to each channel's largest.
void Int8Weights::check(int64_t rows, int64_t outs, int64_t ins) {
  SCOPED_TRACE(testing::Message() << rows << " rows, " << ins << " x " << outs);
  const std::vector<float> w = random_.normal(outs * ins);
  const std::vector<float> x = rounded(random_.normal(rows * ins), dtype());
  const std::vector<float> actual = product(w, outs, x, rows);
  std::vector<float> expected;
  std::vector<float> bounds;
  for (int64_t r = 0; r < rows; ++r) {
    double largest_x = 0;
    for (int64_t i = 0; i < ins; ++i) {
      largest_x = std::max(largest_x, std::abs(double{x[r * ins + i]}));
    }
    for (int64_t o = 0; o < outs; ++o) {
      double largest = 0;
      for (int64_t i = 0; i < ins; ++i) {
        largest = std::max(largest, std::abs(double{w[o * ins + i]}));
      }
      double sum = 0;
      double bound = 0;
      for (int64_t i = 0; i < ins; ++i) {
        const double weight = std::round(w[o * ins + i] / largest * 127) * largest / 127;
        sum += weight * x[r * ins + i];
        // float32 sums, and at bfloat16 rows of 16 bits.
        bound += 4e-6 * std::abs(weight * x[r * ins + i]);
        if (dtype() == DType::kBFloat16) bound += std::abs(weight) * largest_x / 32767 / 2;
      }
      expected.push_back(static_cast<float>(sum));
      bounds.push_back(static_cast<float>(bound));
    }
  }
  expect_within(actual, expected, bounds);
}

TEST_P(Int8Weights, AreRoundedPerChannel) {
  for (const int64_t rows : {1, 2, 3, 7, 8, 9, 20, 70}) check(rows, 130, 96);
  check(1, 1, 1);
  check(3, 33, 100);
  check(1, 64, 3000);
}

TEST_P(Int8Weights, EachChannelHasItsOwnScale) {
  const std::vector<float> w = {1e-20F, -1e-20F, 1e10F, 5e9F, 0.0F, 0.0F};
  const std::vector<float> result = product(w, 3, {1.0F, 0.5F}, 1);
  EXPECT_NEAR(result[0], 0.5e-20, 0.01e-20);
  EXPECT_NEAR(result[1], 1.25e10, 0.01e10);
  EXPECT_EQ(result[2], 0.0F);
}

TEST_P(Int8Weights, BrokenNumbersDoNotLookWhole) {
  for (const int64_t rows : {1, 12}) {
    std::vector<float> x(static_cast<size_t>(rows) * 2, 1.0F);
    const std::vector<float> by_weight = product({kNan, 1.0F, 1.0F, 1.0F}, 2, x, rows);
    EXPECT_TRUE(std::isnan(by_weight[0]));
    EXPECT_NEAR(by_weight[1], 2.0F, 0.001F);
    x[1] = kNan;
    EXPECT_TRUE(std::isnan(product({1.0F, 1.0F}, 1, x, rows)[0]));
  }
}

INSTANTIATE_TEST_SUITE_P(Backends, Int8Weights, testing::ValuesIn(int8_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
