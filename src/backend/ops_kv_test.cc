#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "backend/ops_test_support.h"

namespace anyslot::ops_test {
namespace {

constexpr double kTurnError = 1e-6;  // of a turn in float32, relative to the pair's size

struct KvCase {
  int head_dim;
  int num_kv_heads;
  int rotary_dim;
};
constexpr KvCase kKvCases[] = {{16, 1, 16}, {32, 8, 32},   {64, 2, 64},  {64, 3, 32},  {80, 2, 32},
                               {96, 1, 96}, {128, 8, 128}, {128, 2, 64}, {256, 1, 64}, {64, 2, 0}};

/// Tokens in consecutive slots from `first_slot` on, at consecutive angles from `first_angle` on.
StepPlan writing_step(int64_t num_tokens, int64_t first_slot, int64_t first_angle) {
  StepPlan step;
  for (int64_t i = 0; i < num_tokens; ++i) {
    step.rows.push_back({0, i, first_slot + i, first_angle + i, 0, false});
  }
  step.sequences.push_back({0, static_cast<int32_t>(num_tokens), 0, 0});
  return step;
}

class KvOps : public OpsTest {
 protected:
  /// Writes the tokens of the step into one layer. k, v: [rows, num_kv_heads * head_dim].
  void write(Backend& target, KvStorage& storage, int layer, const RopeTable& rope,
             const StepPlan& step, const std::vector<float>& k, const std::vector<float>& v);
  std::vector<float> random_block(const KvShape& shape) {
    return rounded(
        random_.normal(static_cast<int64_t>(shape.block_bytes() / dtype_size(kv_dtype()))),
        kv_dtype());
  }
  KvShape shape_of(const KvCase& c, int num_layers, int64_t num_blocks) const {
    return {num_layers, c.num_kv_heads, c.head_dim, kv_dtype(), num_blocks};
  }
  /// The same, unrounded, for the oracle.
  static KvShape exact(KvShape shape) {
    shape.dtype = DType::kFloat32;
    return shape;
  }
};

void KvOps::write(Backend& target, KvStorage& storage, int layer, const RopeTable& rope,
                  const StepPlan& step, const std::vector<float>& k, const std::vector<float>& v) {
  const KvShape& shape = storage.shape();
  const int64_t cols = int64_t{shape.num_kv_heads} * shape.head_dim;
  const auto rows = static_cast<int64_t>(step.rows.size());
  const AttentionSpec spec{shape.num_kv_heads, shape.num_kv_heads, shape.head_dim, 1.0F, 0, &rope};
  // K and V are column ranges of one product.
  std::vector<float> kv;
  for (int64_t r = 0; r < rows; ++r) {
    kv.insert(kv.end(), k.begin() + r * cols, k.begin() + (r + 1) * cols);
    kv.insert(kv.end(), v.begin() + r * cols, v.begin() + (r + 1) * cols);
  }
  const Tensor tensor(target, rows, 2 * cols, DType::kFloat32, kv);
  ASSERT_OK(target.begin_step(step, {}));
  ASSERT_OK(target.write_kv(storage, layer, spec, tensor.view().col_range(0, cols),
                            tensor.view().col_range(cols, cols)));
  ASSERT_OK(target.end_step());
}

/// For each element of a block: rounding * |value|, and, of keys, `pair_error` * the size of its
/// pair.
std::vector<float> bounds_of(const std::vector<float>& block, const KvShape& shape, int rotary_dim,
                             double rounding, double pair_error) {
  std::vector<float> bounds(block.size());
  const double smallest = rounding > 0 ? underflow_of(shape.dtype) : 0;
  for (size_t i = 0; i < block.size(); ++i) {
    bounds[i] = static_cast<float>(rounding * std::abs(block[i]) + smallest);
  }
  for (int layer = 0; layer < shape.num_layers; ++layer) {
    for (int head = 0; head < shape.num_kv_heads; ++head) {
      for (int64_t token = 0; token < kBlockSize; ++token) {
        const int64_t at = canonical_index(shape, layer, 0, head, token);
        for (int j = 0; j < rotary_dim / 2; ++j) {
          const int64_t other = at + j + rotary_dim / 2;
          const double size = std::hypot(block[at + j], block[other]);
          bounds[at + j] += static_cast<float>(pair_error * size);
          bounds[other] += static_cast<float>(pair_error * size);
        }
      }
    }
  }
  return bounds;
}

void ignore_tokens_from(int64_t first, const KvShape& shape, std::vector<float>& bounds) {
  for (size_t i = 0; i < bounds.size(); ++i) {
    if (static_cast<int64_t>(i) / shape.head_dim % kBlockSize >= first) {
      bounds[i] = std::numeric_limits<float>::infinity();
    }
  }
}

TEST_P(KvOps, WriteTurnsKeysAndStoresAtTheSlot) {
  for (const KvCase& c : kKvCases) {
    SCOPED_TRACE(testing::Message() << "head_dim " << c.head_dim << ", rotary " << c.rotary_dim);
    const RopeTable rope(rope_parameters(c.rotary_dim));
    const KvShape shape = shape_of(c, 3, 6);
    const auto actual = storage_of(backend(), shape);
    const auto expected = storage_of(oracle(), exact(shape));
    ASSERT_TRUE(actual && expected);
    // 37 tokens from the middle of block 1 on, at angles beyond 100,000; the rest must stay 0.
    const StepPlan step = writing_step(37, kBlockSize + 5, 100'003);
    const int64_t size = 37 * c.num_kv_heads * c.head_dim;
    const std::vector<float> k = random_.normal(size);
    const std::vector<float> v = random_.normal(size);
    write(backend(), *actual, 1, rope, step, k, v);
    write(oracle(), *expected, 1, rope, step, k, v);
    for (BlockId block = 0; block < 6; ++block) {
      SCOPED_TRACE(testing::Message() << "block " << block);
      const std::vector<float> values = export_values(*expected, block);
      expect_within(export_values(*actual, block), values,
                    bounds_of(values, shape, c.rotary_dim, rounding_of(kv_dtype()), kTurnError));
    }
  }
}

TEST_P(KvOps, UnturnedKeysAndValuesAreTheSameBytesInEveryBackend) {
  for (const KvCase& c : kKvCases) {
    SCOPED_TRACE(testing::Message() << "head_dim " << c.head_dim);
    const RopeTable rope(rope_parameters(c.rotary_dim));
    const KvShape shape = shape_of(c, 2, 3);
    const auto actual = storage_of(backend(), shape);
    const auto expected = storage_of(oracle(), shape);
    ASSERT_TRUE(actual && expected);
    StepPlan step = writing_step(33, 0, 0);
    for (Row& row : step.rows) row.write_angle = 0;
    const int64_t size = 33 * c.num_kv_heads * c.head_dim;
    for (int layer = 0; layer < 2; ++layer) {
      const std::vector<float> k = random_.normal(size);
      const std::vector<float> v = random_.normal(size);
      write(backend(), *actual, layer, rope, step, k, v);
      write(oracle(), *expected, layer, rope, step, k, v);
    }
    for (BlockId block = 0; block < 3; ++block) {
      EXPECT_EQ(export_values(*actual, block), export_values(*expected, block)) << block;
    }
  }
}

TEST_P(KvOps, RowsMayWriteInAnyOrder) {
  const KvCase c{64, 2, 64};
  const RopeTable rope(rope_parameters(c.rotary_dim));
  const KvShape shape = shape_of(c, 1, 3);
  const auto in_order = storage_of(backend(), shape);
  const auto reversed = storage_of(backend(), shape);
  ASSERT_TRUE(in_order && reversed);
  StepPlan step = writing_step(40, 3, 7);
  const int64_t cols = c.num_kv_heads * c.head_dim;
  std::vector<float> k = random_.normal(40 * cols);
  write(backend(), *in_order, 0, rope, step, k, k);
  std::ranges::reverse(step.rows);
  std::vector<float> k_reversed;
  for (int64_t r = 39; r >= 0; --r) {
    k_reversed.insert(k_reversed.end(), k.begin() + r * cols, k.begin() + (r + 1) * cols);
  }
  write(backend(), *reversed, 0, rope, step, k_reversed, k_reversed);
  for (BlockId block = 0; block < 3; ++block) {
    EXPECT_EQ(export_values(*in_order, block), export_values(*reversed, block));
  }
}

TEST_P(KvOps, CopyTurnsTheKeysOfEveryLayer) {
  for (const KvCase& c : kKvCases) {
    for (const int64_t turn_by : {int64_t{0}, int64_t{17}, int64_t{123'456}, int64_t{-40}}) {
      SCOPED_TRACE(testing::Message() << "head_dim " << c.head_dim << ", turn by " << turn_by);
      const RopeTable first(rope_parameters(c.rotary_dim));
      const RopeTable second(rope_parameters(c.rotary_dim, 500'000.0));
      const std::vector<const RopeTable*> ropes = {&first, &second};
      const KvShape shape = shape_of(c, 2, 5);
      const auto actual = storage_of(backend(), shape);
      const auto expected = storage_of(oracle(), exact(shape));
      ASSERT_TRUE(actual && expected);
      for (BlockId block = 0; block < 5; ++block) {
        const std::vector<float> values = random_block(shape);
        import_values(*actual, block, values);
        import_values(*expected, block, values);
      }
      const std::vector<BlockCopy> copies = {{0, 3, 16, turn_by}, {1, 4, 7, turn_by}};
      ASSERT_OK(backend().copy_blocks(*actual, copies, ropes));
      ASSERT_OK(oracle().copy_blocks(*expected, copies, ropes));
      for (BlockId block = 0; block < 5; ++block) {
        const std::vector<float> values = export_values(*expected, block);
        const bool exact_copy = turn_by == 0 || block < 3;
        std::vector<float> bounds =
            bounds_of(values, shape, c.rotary_dim, exact_copy ? 0 : rounding_of(kv_dtype()),
                      exact_copy ? 0 : kTurnError);
        if (block == 4) ignore_tokens_from(7, shape, bounds);
        expect_within(export_values(*actual, block), values, bounds);
      }
    }
  }
}

TEST_P(KvOps, ACopyEqualsEncodingAtTheShiftedPosition) {
  const KvCase c{64, 2, 64};
  const RopeTable rope(rope_parameters(c.rotary_dim));
  const std::vector<const RopeTable*> ropes = {&rope};
  const KvShape shape = shape_of(c, 1, 4);
  const auto copied = storage_of(backend(), shape);
  const auto fresh = storage_of(oracle(), exact(shape));
  ASSERT_TRUE(copied && fresh);
  constexpr int64_t kStart = 100'001;
  const int64_t size = 29 * c.num_kv_heads * c.head_dim;
  const std::vector<float> k = random_.normal(size);
  const std::vector<float> v = random_.normal(size);
  write(backend(), *copied, 0, rope, writing_step(29, 0, 0), k, v);
  const std::vector<BlockCopy> copies = {{0, 2, 16, kStart}, {1, 3, 13, kStart}};
  ASSERT_OK(backend().copy_blocks(*copied, copies, ropes));
  write(oracle(), *fresh, 0, rope, writing_step(29, int64_t{2} * kBlockSize, kStart), k, v);
  for (const BlockId block : {2, 3}) {
    const std::vector<float> values = export_values(*fresh, block);
    // Keys are rounded when they are stored, and again after the copy's turn.
    std::vector<float> bounds = bounds_of(values, shape, c.rotary_dim, rounding_of(kv_dtype()),
                                          kTurnError + 1.5 * rounding_of(kv_dtype()));
    if (block == 3) ignore_tokens_from(13, shape, bounds);
    expect_within(export_values(*copied, block), values, bounds);
  }
}

TEST_P(KvOps, ExportGivesBackWhatWasImported) {
  for (const KvCase& c : kKvCases) {
    SCOPED_TRACE(testing::Message() << "head_dim " << c.head_dim);
    const KvShape shape = shape_of(c, 2, 3);
    const auto storage = storage_of(backend(), shape);
    ASSERT_TRUE(storage);
    std::vector<std::vector<float>> blocks;
    for (BlockId block = 0; block < 3; ++block) {
      EXPECT_EQ(export_values(*storage, block),
                std::vector<float>(shape.block_bytes() / dtype_size(kv_dtype())));
      blocks.push_back(random_block(shape));
      import_values(*storage, block, blocks.back());
    }
    for (BlockId block = 0; block < 3; ++block) {
      EXPECT_EQ(export_values(*storage, block), blocks[block]);
    }
  }
}

TEST_P(KvOps, TransfersOfOtherSizesOrBlocksFail) {
  const auto storage = storage_of(backend(), shape_of({16, 1, 16}, 1, 2));
  ASSERT_TRUE(storage);
  std::vector<std::byte> bytes(storage->shape().block_bytes());
  EXPECT_EQ(storage->export_block(2, bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(storage->import_block(-1, bytes).code(), StatusCode::kInvalidArgument);
  bytes.pop_back();
  EXPECT_EQ(storage->export_block(0, bytes).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(storage->import_block(0, bytes).code(), StatusCode::kInvalidArgument);
}

INSTANTIATE_TEST_SUITE_P(Backends, KvOps, testing::ValuesIn(kv_cases()), case_name);

}  // namespace
}  // namespace anyslot::ops_test
