// KV pools whose layers have more than 2^31 elements: blocks at their end are those at their begin.

#include <algorithm>
#include <numeric>
#include <vector>

#include "backend/ops_test_support.h"

namespace anyslot::ops_test {
namespace {

constexpr int kHeads = 16;
constexpr int kKvHeads = 8;
constexpr int kHeadDim = 128;
constexpr int64_t kBlocks = 70'000;  // 4.6 GB of bfloat16 per layer
constexpr int64_t kTokens = 40;

class LargePool : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = create_cuda_backend({});
    if (opened.status().code() == StatusCode::kFailedPrecondition) {
      GTEST_SKIP() << opened.status().message();
    }
    ASSERT_TRUE(opened.ok()) << opened.status().message();
    backend_ = std::move(*opened);
    const KvShape shape{2, kKvHeads, kHeadDim, DType::kBFloat16, kBlocks};
    const auto memory = backend_->device_memory();
    ASSERT_TRUE(memory.ok() && memory->has_value());
    const auto bytes = static_cast<int64_t>(shape.block_bytes()) * kBlocks;
    if ((*memory)->free_bytes < bytes + (int64_t{1} << 30)) GTEST_SKIP() << "the GPU is too small";
    auto storage = backend_->create_kv_storage(shape);
    ASSERT_TRUE(storage.ok()) << storage.status().message();
    storage_ = std::move(*storage);
  }

  std::vector<float> block_values(BlockId block) const { return export_values(*storage_, block); }

  /// Writes kTokens rows into the blocks from `first` on, then attends to them, in the second
  /// layer.
  std::vector<float> write_and_attend(BlockId first) {
    Random random(kSeed);
    std::vector<BlockId> blocks(kTokens / kBlockSize + 1);
    std::iota(blocks.begin(), blocks.end(), first);
    StepPlan step;
    step.placements.push_back({{blocks, kTokens, 0, KeyForm::kTurned}, 0, kTokens, 0});
    step.sequences.push_back({0, kTokens, 0, 1});
    for (int64_t i = 0; i < kTokens; ++i) {
      step.rows.push_back({0, i, int64_t{first} * kBlockSize + i, i, 0, true});
    }
    const RopeTable rope(rope_parameters(kHeadDim));
    const AttentionSpec spec{kHeads, kKvHeads, kHeadDim, 0.1F, 0, &rope};
    const auto tensor = [&](int64_t heads) {
      const int64_t cols = heads * kHeadDim;
      return Tensor(*backend_, kTokens, cols, DType::kFloat32, random.normal(kTokens * cols));
    };
    const Tensor k = tensor(kKvHeads);
    const Tensor v = tensor(kKvHeads);
    const Tensor q = tensor(kHeads);
    const Tensor out(*backend_, kTokens, kHeads * kHeadDim, DType::kBFloat16);
    EXPECT_TRUE(backend_->begin_step(step, std::vector<int64_t>{0}).ok());
    EXPECT_TRUE(backend_->write_kv(*storage_, 1, spec, k, v).ok());
    EXPECT_TRUE(backend_->attention(*storage_, 1, spec, RowSet::kAll, q, out).ok());
    EXPECT_TRUE(backend_->end_step().ok());
    return out.values();
  }

  std::unique_ptr<Backend> backend_;
  std::unique_ptr<KvStorage> storage_;
};

TEST_F(LargePool, StepsReadAndWriteItsLastBlocks) {
  const std::vector<float> expected = write_and_attend(0);
  EXPECT_TRUE(std::ranges::any_of(expected, [](float x) { return x != 0; }));
  EXPECT_EQ(write_and_attend(kBlocks - 3), expected);
  for (BlockId i = 0; i < 3; ++i) EXPECT_EQ(block_values(kBlocks - 3 + i), block_values(i));
}

TEST_F(LargePool, CopiesReachItsLastBlocks) {
  write_and_attend(0);
  const RopeTable rope(rope_parameters(kHeadDim));
  const std::vector<const RopeTable*> ropes = {&rope, &rope};
  const auto last = static_cast<BlockId>(kBlocks - 1);
  ASSERT_OK(backend_->copy_blocks(*storage_, std::vector<BlockCopy>{{1, last, 16, 0}}, ropes));
  EXPECT_EQ(block_values(last), block_values(1));
  ASSERT_OK(backend_->copy_blocks(*storage_, std::vector<BlockCopy>{{last, 40, 16, 0}}, ropes));
  EXPECT_EQ(block_values(40), block_values(1));
}

TEST_F(LargePool, BlocksAreImportedAndExportedOneByOne) {
  const int64_t size = static_cast<int64_t>(storage_->shape().block_bytes()) / 2;
  Random random(kSeed);
  const BlockId blocks[] = {0, 32'767, 32'768, kBlocks - 2, kBlocks - 1};
  std::vector<std::vector<float>> values;
  for (const BlockId block : blocks) {
    values.push_back(rounded(random.normal(size), DType::kBFloat16));
    import_values(*storage_, block, values.back());
  }
  for (size_t i = 0; i < std::size(blocks); ++i) EXPECT_EQ(block_values(blocks[i]), values[i]);
  EXPECT_EQ(block_values(kBlocks - 3), std::vector<float>(static_cast<size_t>(size)));
}

}  // namespace
}  // namespace anyslot::ops_test
