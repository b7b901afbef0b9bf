#include <gmock/gmock.h>

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "backend/ops_test_support.h"

namespace anyslot::ops_test {
namespace {

using ::testing::ElementsAre;
using ::testing::FloatNear;

class ExpertOps : public OpsTest {
 protected:
  void SetUp() override {
    OpsTest::SetUp();
    if (GetParam().is_cuda) GTEST_SKIP() << "such models are refused there";
  }

  ExpertRows choose(int64_t num_experts, const std::vector<float>& logits,
                    const ExpertChoice& choice) {
    const auto rows = static_cast<int64_t>(logits.size()) / num_experts;
    ExpertRows chosen;
    const Status status = backend().choose_experts(
        Tensor(backend(), rows, num_experts, DType::kFloat32, logits, 3), choice, chosen);
    EXPECT_TRUE(status.ok()) << status.message();
    return chosen;
  }
};

TEST_P(ExpertOps, RowsGoToTheExpertsOfTheirLargestLogits) {
  // Shares of the three rows: 4 2 1 1, 1 1 2 4 and, all equal, 1 1 1 1; in eighths or quarters.
  const float two = std::log(2.0F);
  const std::vector<float> logits = {2 * two, two,         0,  0,  5,  5,
                                     5 + two, 5 + 2 * two, -9, -9, -9, -9};
  const ExpertRows plain = choose(4, logits, {2, false});
  EXPECT_THAT(plain.begins, ElementsAre(0, 2, 4, 5, 6));
  EXPECT_THAT(plain.rows, ElementsAre(0, 2, 0, 2, 1, 1));
  EXPECT_THAT(plain.shares, ElementsAre(FloatNear(0.5F, 1e-6F), FloatNear(0.25F, 1e-6F),
                                        FloatNear(0.25F, 1e-6F), FloatNear(0.25F, 1e-6F),
                                        FloatNear(0.25F, 1e-6F), FloatNear(0.5F, 1e-6F)));
  const ExpertRows normalized = choose(4, logits, {2, true});
  EXPECT_EQ(normalized.rows, plain.rows);
  EXPECT_THAT(
      normalized.shares,
      ElementsAre(FloatNear(2 / 3.0F, 1e-6F), FloatNear(0.5F, 1e-6F), FloatNear(1 / 3.0F, 1e-6F),
                  FloatNear(0.5F, 1e-6F), FloatNear(1 / 3.0F, 1e-6F), FloatNear(2 / 3.0F, 1e-6F)));
}

TEST_P(ExpertOps, AllExpertsShareOne) {
  const ExpertRows chosen = choose(37, random_.normal(50 * 37), {37, false});
  std::vector<double> sums(50);
  for (size_t i = 0; i < chosen.rows.size(); ++i) sums[chosen.rows[i]] += chosen.shares[i];
  for (const double sum : sums) EXPECT_NEAR(sum, 1, 1e-5);
  EXPECT_EQ(chosen.begins.back(), 50 * 37);
}

TEST_P(ExpertOps, LogitsThatAreNoNumbersStayInBounds) {
  const ExpertRows chosen = choose(3, std::vector<float>(6, NAN), {2, true});
  EXPECT_THAT(chosen.begins, ElementsAre(0, 2, 4, 4));
  for (const float share : chosen.shares) EXPECT_TRUE(std::isnan(share));
}

TEST_P(ExpertOps, LogitsThatAreNoNumbersComeLast) {
  const ExpertRows chosen = choose(3, {NAN, 1, 2, 1, NAN, 2, 2, 1, NAN}, {2, false});
  EXPECT_THAT(chosen.begins, ElementsAre(0, 2, 4, 6)) << "experts 2 1, 2 0 and 0 1";
}

TEST_P(ExpertOps, ChoicesThatCannotBeAreRefused) {
  ExpertRows chosen;
  const Tensor logits(backend(), 2, 4, DType::kFloat32);
  for (const int per_row : {0, 5}) {
    EXPECT_EQ(backend().choose_experts(logits, {per_row, false}, chosen).code(),
              StatusCode::kInvalidArgument);
  }
}

TEST_P(ExpertOps, RowsAreGatheredAndAdded) {
  constexpr int64_t kCols = 67;
  const std::vector<int32_t> rows = {1, 4, 5};
  const std::vector<float> shares = {0.5F, -2, 3};
  const std::vector<float> x = rounded(random_.normal(6 * kCols), dtype());
  const Tensor gathered(backend(), 3, kCols, dtype());
  ASSERT_OK(backend().gather_rows(Tensor(backend(), 6, kCols, dtype(), x, 2), rows, gathered));
  const std::vector<float> y = random_.normal(3 * kCols);
  const std::vector<float> before = random_.normal(6 * kCols);
  const Tensor sum(backend(), 6, kCols, DType::kFloat32, before, 7);
  ASSERT_OK(backend().add_rows(Tensor(backend(), 3, kCols, DType::kFloat32, y), rows, shares, sum));
  std::vector<float> expected_rows;
  std::vector<float> expected_sum = before;
  for (size_t k = 0; k < rows.size(); ++k) {
    for (int64_t c = 0; c < kCols; ++c) {
      expected_rows.push_back(x[rows[k] * kCols + c]);
      expected_sum[rows[k] * kCols + c] += shares[k] * y[k * kCols + c];
    }
  }
  EXPECT_EQ(gathered.values(), expected_rows);
  expect_near(sum.values(), expected_sum, 1e-6, 1e-6);

  const std::vector<int32_t> outside = {1, 6, 2};
  EXPECT_EQ(backend().gather_rows(Tensor(backend(), 6, kCols, dtype()), outside, gathered).code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(backend()
                .add_rows(Tensor(backend(), 3, kCols, DType::kFloat32), rows,
                          std::span(shares).first(2), sum)
                .code(),
            StatusCode::kInvalidArgument);
  const std::vector<int32_t> twice = {1, 4, 4};
  EXPECT_EQ(
      backend().add_rows(Tensor(backend(), 3, kCols, DType::kFloat32), twice, shares, sum).code(),
      StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, ExpertOps, testing::ValuesIn(backend_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
