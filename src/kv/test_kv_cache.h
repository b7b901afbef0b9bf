#pragma once

#include <gtest/gtest.h>

#include <vector>

#include "kv/keys.h"
#include "kv/kv_cache.h"

namespace anyslot {

inline Digest key(int64_t name) { return DigestBuilder().add(name).finish(); }

/// A pool of 20 blocks; after each test nothing is left over.
class KvCacheTest : public ::testing::Test {
 protected:
  void TearDown() override { check(); }

  void check() {
    const Status status = cache_.check_integrity(owned_);
    EXPECT_TRUE(status.ok()) << status.message();
  }
  /// A document of `blocks` full blocks that was encoded and used once.
  void add_document(int64_t name, int64_t blocks) {
    CacheEntry* const entry = cache_.insert_encoding(key(name), blocks * kBlockSize);
    ASSERT_NE(entry, nullptr);
    cache_.mark_ready(*entry);
    cache_.release(*entry);
  }
  void use(int64_t name) {
    CacheEntry* const entry = cache_.find(key(name));
    ASSERT_NE(entry, nullptr);
    cache_.acquire(*entry);
    cache_.release(*entry);
  }
  void allocate(int64_t count) {
    auto blocks = cache_.allocate_private(count);
    ASSERT_TRUE(blocks.has_value());
    owned_.insert(owned_.end(), blocks->begin(), blocks->end());
  }

  KvCache cache_{20};
  std::vector<BlockId> owned_;  // private blocks
};

}  // namespace anyslot
