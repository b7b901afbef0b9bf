#include "backend/cpu/cpu_kv_storage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <vector>

namespace anyslot::cpu {
namespace {

TEST(CpuKvStorage, HeadsAreAlignedAndApart) {
  const KvShape shape{2, 3, 48, DType::kBFloat16, 5};
  auto storage = CpuKvStorage::create(shape);
  ASSERT_TRUE(storage.ok()) << storage.status().message();
  std::set<std::byte*> heads;
  for (int layer = 0; layer < 2; ++layer) {
    for (BlockId block = 0; block < 5; ++block) {
      for (const KvPart part : {KvPart::kKey, KvPart::kValue}) {
        for (int h = 0; h < 3; ++h) heads.insert((*storage)->head(layer, block, part, h));
      }
    }
  }
  EXPECT_EQ(heads.size(), 60U);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(*heads.begin()) % 64, 0U);
  const auto extent = static_cast<size_t>(*heads.rbegin() - *heads.begin());
  EXPECT_EQ(extent, 59 * (*storage)->head_bytes());
}

/// Canonical bytes in which element (layer, part, head, token, d) is its own index.
TEST(CpuKvStorage, PacksTokensOfKeysAndPairsOfValuesSideBySide) {
  const KvShape shape{1, 2, 32, DType::kBFloat16, 2};
  auto storage = CpuKvStorage::create(shape);
  ASSERT_TRUE(storage.ok()) << storage.status().message();
  std::vector<bf16_t> canonical(shape.block_bytes() / sizeof(bf16_t));
  for (size_t i = 0; i < canonical.size(); ++i) canonical[i] = static_cast<bf16_t>(i);
  ASSERT_TRUE((*storage)->import_block(1, std::as_bytes(std::span(canonical))).ok());
  const auto at = [&](KvPart part, int index) {
    bf16_t element;
    std::memcpy(&element, (*storage)->head(0, 1, part, 1) + index * sizeof element, sizeof element);
    return element;
  };
  const auto expected = [](int part, int token, int d) {
    return static_cast<bf16_t>(((part * 2 + 1) * 16 + token) * 32 + d);
  };
  // Keys: dimensions 0 and 1 of all tokens, then 2 and 3. Values: tokens 0 and 1 of all dimensions.
  EXPECT_EQ(at(KvPart::kKey, 0), expected(0, 0, 0));
  EXPECT_EQ(at(KvPart::kKey, 1), expected(0, 0, 1));
  EXPECT_EQ(at(KvPart::kKey, 2), expected(0, 1, 0));
  EXPECT_EQ(at(KvPart::kKey, 31), expected(0, 15, 1));
  EXPECT_EQ(at(KvPart::kKey, 32), expected(0, 0, 2));
  EXPECT_EQ(at(KvPart::kValue, 0), expected(1, 0, 0));
  EXPECT_EQ(at(KvPart::kValue, 1), expected(1, 1, 0));
  EXPECT_EQ(at(KvPart::kValue, 2), expected(1, 0, 1));
  EXPECT_EQ(at(KvPart::kValue, 63), expected(1, 1, 31));
  EXPECT_EQ(at(KvPart::kValue, 64), expected(1, 2, 0));
}

TEST(CpuKvStorage, NamesTheShapeThatItCannotServe) {
  for (const int head_dim : {8, 40, 72, 1040}) {
    const auto storage = CpuKvStorage::create({1, 1, head_dim, DType::kBFloat16, 1});
    EXPECT_EQ(storage.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(storage.status().message(),
                testing::HasSubstr("head_dim " + std::to_string(head_dim)));
    EXPECT_THAT(storage.status().message(), testing::HasSubstr("'reference'"));
  }
  EXPECT_EQ(CpuKvStorage::create({1, 1, 64, DType::kFloat16, 1}).status().code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(CpuKvStorage::create({0, 1, 64, DType::kFloat32, 1}).status().code(),
            StatusCode::kInvalidArgument);
}

TEST(CpuKvStorage, APoolBeyondAllMemoryIsRefused) {
  const auto storage = CpuKvStorage::create({80, 8, 128, DType::kBFloat16, int64_t{1} << 50});
  EXPECT_EQ(storage.status().code(), StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace anyslot::cpu
