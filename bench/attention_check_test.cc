#include "attention_check.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "attention_step.h"

namespace anyslot::bench {
namespace {

constexpr uint32_t kSeed = 11;

/// A step on the reference backend in float32, with random K and V.
class AttentionCheck : public testing::Test {
 protected:
  AttentionCheck() {
    const KvShape shape{.num_layers = 1,
                        .num_kv_heads = 2,
                        .head_dim = 16,
                        .dtype = DType::kFloat32,
                        .num_blocks = static_cast<int64_t>(pool_size_)};
    auto storage = backend_->create_kv_storage(shape);
    EXPECT_TRUE(storage.ok()) << storage.status().message();
    storage_ = std::move(*storage);
    std::vector<float> values(shape.block_bytes() / sizeof(float));
    for (BlockId block = 0; block < shape.num_blocks; ++block) {
      for (float& value : values) value = normal_(random_);
      EXPECT_TRUE(storage_->import_block(block, std::as_bytes(std::span(values))).ok());
    }
    for (float& value : q_) value = normal_(random_);
    const std::vector<int64_t> windows = {0};
    EXPECT_TRUE(backend_->begin_step(step_.plan(), windows).ok());
    EXPECT_TRUE(backend_->attention(*storage_, 0, spec_, RowSet::kAll, view(q_), view(out_)).ok());
    EXPECT_TRUE(backend_->end_step().ok());
  }

  static TensorView view(std::vector<float>& values) {
    const auto rows = static_cast<int64_t>(values.size()) / kCols;
    return {values.data(), DType::kFloat32, rows, kCols, kCols};
  }

  static constexpr int64_t kCols = 4 * 16;
  static constexpr int64_t kRows = 3 * 5;
  const size_t pool_size_ = 30;
  std::mt19937 random_{kSeed};
  std::normal_distribution<float> normal_;
  std::unique_ptr<Backend> backend_ = create_reference_backend({DType::kFloat32, 1, ""});
  std::unique_ptr<KvStorage> storage_;
  RopeTable rope_{RopeParameters{{1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003}, 1.0}};
  AttentionSpec spec_{4, 2, 16, 0.25F, 0, &rope_};
  AttentionStep step_ = [this] {
    std::vector<BlockId> pool(pool_size_);
    std::iota(pool.begin(), pool.end(), 0);
    return AttentionStep({Method::kLazy, Sharing::kShared, 5, 100, 3, 40}, pool);
  }();
  std::vector<float> q_ = std::vector<float>(kRows * kCols);
  std::vector<float> out_ = std::vector<float>(kRows * kCols);
};

TEST_F(AttentionCheck, TheChosenRowsAloneGiveTheSame) {
  const std::vector<int32_t> rows = rows_to_check(step_.plan(), 4);
  ASSERT_EQ(rows.size(), 4U);
  const auto expected = reference_attention(step_.plan(), rows, *storage_, spec_, view(q_));
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  EXPECT_LT(largest_row_error(view(out_), rows, *expected), 1e-6) << "seed " << kSeed;
}

TEST_F(AttentionCheck, OneWrongElementShows) {
  const std::vector<int32_t> rows = rows_to_check(step_.plan(), 3);
  const auto expected = reference_attention(step_.plan(), rows, *storage_, spec_, view(q_));
  ASSERT_TRUE(expected.ok()) << expected.status().message();
  float& element = out_[static_cast<size_t>(rows.back() * kCols + 7)];
  element += 0.1F;
  EXPECT_GT(largest_row_error(view(out_), rows, *expected),
            row_error_bound(DType::kBFloat16, DType::kBFloat16));
  element = std::nanf("");
  EXPECT_TRUE(std::isinf(largest_row_error(view(out_), rows, *expected)));
}

TEST_F(AttentionCheck, ChoosesRowsOfTheFirstAndTheLastRequest) {
  const std::vector<int32_t> rows = rows_to_check(step_.plan(), 4);
  EXPECT_TRUE(std::ranges::is_sorted(rows));
  EXPECT_EQ(rows.front(), 0);
  EXPECT_EQ(rows.back(), kRows - 1);
  EXPECT_EQ(rows_to_check(step_.plan(), 1), std::vector<int32_t>{kRows - 1});
}

}  // namespace
}  // namespace anyslot::bench
