// What memory that does not suffice leaves of the cache.
#include <gtest/gtest.h>

#include <functional>
#include <new>

#include "failing_allocation.h"
#include "kv/test_kv_cache.h"

namespace anyslot {
namespace {

using testing_support::FailingAllocation;

/// A pool of 20 blocks with an evictable document (1) of 18, and one private block.
struct SmallCache {
  SmallCache() {
    cache.mark_ready(*cache.insert_encoding(key(1), 18 * kBlockSize, {}, key(50)));
    cache.release(document());
    owned = *cache.allocate_private(1);
  }
  CacheEntry& document() { return *cache.find(key(1)); }

  KvCache cache{20};
  std::vector<BlockId> owned;
};

/// Fails each allocation of `work` in turn: the cache must be sound then, and the work succeed when
/// it is tried again.
void expect_all_or_nothing(const std::function<void(SmallCache&)>& work) {
  for (int64_t after = 0;; ++after) {
    SCOPED_TRACE(testing::Message() << "failure after " << after << " allocations");
    SmallCache small;
    bool failed = false;
    {
      const FailingAllocation failing(after);
      try {
        work(small);
      } catch (const std::bad_alloc&) {
        failed = true;
      }
      EXPECT_EQ(failing.has_failed(), failed) << "it must be told";
    }
    const Status status = small.cache.check_integrity(small.owned);
    ASSERT_TRUE(status.ok()) << status.message();
    if (!failed) {
      EXPECT_GT(after, 0) << "nothing was tried";
      return;
    }
    work(small);
    EXPECT_TRUE(small.cache.check_integrity(small.owned).ok());
  }
}

TEST(KvCacheFailure, ADocumentIsEnteredWithItsBlocksOrNotAtAll) {
  expect_all_or_nothing([](SmallCache& small) {
    EXPECT_NE(small.cache.insert_encoding(key(2), 10 * kBlockSize, key(40), key(50)), nullptr);
  });
}

TEST(KvCacheFailure, ATextBlockIsAdoptedOrStaysPrivate) {
  expect_all_or_nothing([](SmallCache& small) {
    EXPECT_NE(small.cache.adopt_text_block(key(2), small.owned.back()), nullptr);
    small.owned.pop_back();
  });
}

TEST(KvCacheFailure, APinIsMadeOrNot) {
  expect_all_or_nothing([](SmallCache& small) {
    CacheEntry& entry = *small.cache.insert_encoding(key(2), kBlockSize, {}, key(51));
    const auto drop = [&] { small.cache.release(entry); };
    try {
      EXPECT_TRUE(small.cache.pin(entry).ok());
    } catch (const std::bad_alloc&) {
      EXPECT_TRUE(small.cache.check_integrity(small.owned).ok());
      drop();
      throw;
    }
    drop();
  });
}

TEST(KvCacheFailure, ATimeToLiveNeedsNoMemoryWhenItBeginsToRun) {
  expect_all_or_nothing(
      [](SmallCache& small) { small.cache.set_time_to_live(small.document(), 7); });
  SmallCache small;
  CacheEntry& entry = small.document();
  small.cache.acquire(entry);
  small.cache.set_time_to_live(entry, 7);
  {
    const FailingAllocation failing(0);
    small.cache.release(entry);
    EXPECT_FALSE(failing.has_failed());
  }
  EXPECT_TRUE(small.cache.check_integrity(small.owned).ok());
  small.cache.set_tick(8);
  EXPECT_EQ(small.cache.find(key(1)), nullptr);
}

TEST(KvCacheFailure, WhatIsRemovedInUseStaysWholeOrGoes) {
  expect_all_or_nothing([](SmallCache& small) {
    CacheEntry& entry = small.document();
    small.cache.acquire(entry);
    try {
      small.cache.remove(entry);
    } catch (const std::bad_alloc&) {
      small.cache.release(entry);
      throw;
    }
    small.cache.release(entry);
  });
}

}  // namespace
}  // namespace anyslot
