// Pins, times to live, lists and removal.
#include <gmock/gmock.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "kv/test_kv_cache.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

TEST_F(KvCacheTest, PinsSpareFromEviction) {
  add_document(1, 5);
  CacheEntry& entry = *cache_.find(key(1));
  ASSERT_TRUE(cache_.pin(entry).ok());
  ASSERT_TRUE(cache_.pin(entry).ok());
  allocate(15);
  EXPECT_FALSE(cache_.allocate_private(1).has_value());
  cache_.unpin(entry);
  EXPECT_FALSE(cache_.allocate_private(1).has_value()) << "it was pinned twice";
  cache_.acquire(entry);
  cache_.unpin(entry);
  EXPECT_FALSE(cache_.allocate_private(1).has_value()) << "it is referenced";
  cache_.release(entry);
  allocate(1);
  EXPECT_EQ(cache_.find(key(1)), nullptr);
}

TEST_F(KvCacheTest, PinsHoldAtMostHalfOfThePool) {
  add_document(1, 6);
  add_document(2, 5);
  add_document(3, 4);
  CacheEntry& first = *cache_.find(key(1));
  CacheEntry& second = *cache_.find(key(2));
  CacheEntry& third = *cache_.find(key(3));
  ASSERT_TRUE(cache_.pin(first).ok());
  const Status status = cache_.pin(second);
  EXPECT_EQ(status.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(status.message(), HasSubstr("takes 5 blocks, and 6 are pinned; at most 10 of 20"));
  EXPECT_EQ(second.pins, 0);
  EXPECT_EQ(cache_.evictable_blocks(second), 5);
  check();
  ASSERT_TRUE(cache_.pin(third).ok()) << "exactly half";
  ASSERT_TRUE(cache_.pin(first).ok()) << "what is pinned takes no more blocks";
  EXPECT_EQ(cache_.stats().pinned_blocks, 10);
  check();
  cache_.unpin(first);
  EXPECT_EQ(cache_.pin(second).code(), StatusCode::kResourceExhausted);
  cache_.unpin(first);
  EXPECT_TRUE(cache_.pin(second).ok());
}

TEST_F(KvCacheTest, ATenantPinsAtMostAQuarterAndIsToldOfItsOwnPinsOnly) {
  const auto add = [&](int name, int64_t blocks, const Tenant& tenant) {
    CacheEntry& entry = *cache_.insert_encoding(key(name), blocks * kBlockSize, {}, tenant);
    cache_.mark_ready(entry);
    cache_.release(entry);
    return &entry;
  };
  const Tenant red = key(100), blue = key(101), green = key(102);
  CacheEntry* const first = add(1, 4, red);
  ASSERT_TRUE(cache_.pin(*first).ok());
  const Status share = cache_.pin(*add(2, 2, red));
  EXPECT_EQ(share.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(share.message(),
              HasSubstr("takes 2 blocks, and 4 are pinned; at most 5 of 20 (a qua"));
  ASSERT_TRUE(cache_.pin(*add(3, 5, blue)).ok()) << "red leaves a share for it";
  const Status others = cache_.pin(*add(4, 2, green));
  EXPECT_EQ(others.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(others.message(), HasSubstr("takes 2 blocks, and 0 are pinned, but others have"));
  EXPECT_EQ(cache_.pinned_blocks(red), 4);
  EXPECT_EQ(cache_.pinned_blocks(green), 0);
  check();
  cache_.unpin(*first);
  EXPECT_EQ(cache_.pinned_blocks(red), 0);
  EXPECT_TRUE(cache_.pin(*cache_.find(key(4))).ok());
  check();
}

TEST_F(KvCacheTest, APinOfAnEncodingStaysWhenItIsReadyAndGoesWhenItIsDropped) {
  CacheEntry* const dropped = cache_.insert_encoding(key(1), 1);
  ASSERT_TRUE(cache_.pin(*dropped).ok());
  EXPECT_EQ(cache_.stats().pinned_blocks, 1);
  check();
  EXPECT_TRUE(cache_.release(*dropped));
  EXPECT_EQ(cache_.stats().pinned_blocks, 0);

  CacheEntry* const kept = cache_.insert_encoding(key(1), 1);
  ASSERT_TRUE(cache_.pin(*kept).ok());
  cache_.mark_ready(*kept);
  cache_.release(*kept);
  EXPECT_EQ(cache_.stats().pinned_blocks, 1);
  EXPECT_EQ(cache_.stats().evictable_blocks, 0);
  cache_.unpin(*kept);
}

TEST_F(KvCacheTest, AHoldIsAPinThatEnds) {
  cache_.set_tick(100);
  add_document(1, 5);
  CacheEntry& entry = *cache_.find(key(1));
  EXPECT_EQ(cache_.next_expiry(), 0);
  ASSERT_TRUE(cache_.hold(entry, 7));
  ASSERT_TRUE(cache_.hold(entry, 3)) << "a shorter one changes nothing";
  EXPECT_EQ(cache_.next_expiry(), 107);
  EXPECT_TRUE(cache_.describe(entry).pinned);
  EXPECT_FALSE(cache_.describe(entry).time_left.has_value());
  allocate(15);
  cache_.set_tick(107);
  EXPECT_FALSE(cache_.allocate_private(1).has_value());
  EXPECT_EQ(cache_.stats().pinned_blocks, 5);
  check();
  cache_.set_tick(108);
  EXPECT_EQ(cache_.stats().pinned_blocks, 0);
  EXPECT_EQ(cache_.find(key(1)), &entry) << "it is no time to live";
  EXPECT_EQ(cache_.next_expiry(), 0);
  check();
  allocate(1);
  EXPECT_EQ(cache_.find(key(1)), nullptr);
}

TEST_F(KvCacheTest, AHoldLeavesPinsAndTheirBoundsAlone) {
  add_document(1, 6);
  add_document(2, 5);
  CacheEntry& first = *cache_.find(key(1));
  CacheEntry& second = *cache_.find(key(2));
  ASSERT_TRUE(cache_.pin(first).ok());
  ASSERT_TRUE(cache_.hold(first, 7));
  EXPECT_EQ(cache_.stats().pinned_blocks, 6) << "counted once";
  EXPECT_FALSE(cache_.hold(second, 7)) << "more than half of the pool";
  EXPECT_EQ(cache_.evictable_blocks(second), 5);
  cache_.set_tick(8);
  EXPECT_EQ(cache_.stats().pinned_blocks, 6) << "the pin stays";
  ASSERT_TRUE(cache_.hold(first, 7));
  cache_.unpin(first);
  EXPECT_EQ(cache_.stats().pinned_blocks, 6) << "the hold stays";
  check();
  cache_.end_hold(first);
  EXPECT_EQ(cache_.stats().pinned_blocks, 0);
  cache_.end_hold(first);
  cache_.remove(first);
  ASSERT_TRUE(cache_.hold(second, 7));
  CacheEntry* const encoding = cache_.insert_encoding(key(3), kBlockSize);
  ASSERT_TRUE(cache_.hold(*encoding, 50));
  EXPECT_TRUE(cache_.release(*encoding)) << "dropped with its hold";
  EXPECT_EQ(cache_.stats().pinned_blocks, 5);
  cache_.set_tick(1000);
  EXPECT_EQ(cache_.stats().pinned_blocks, 0);
  check();
}

TEST_F(KvCacheTest, ATimeToLiveEnds) {
  cache_.set_tick(100);
  add_document(1, 5);
  add_document(2, 5);
  for (int i = 0; i < 10; ++i) use(2);
  cache_.set_time_to_live(*cache_.find(key(2)), 7);
  cache_.set_tick(107);
  EXPECT_NE(cache_.find(key(2)), nullptr) << "seven ticks long";
  check();
  cache_.set_tick(108);
  EXPECT_EQ(cache_.find(key(2)), nullptr);
  EXPECT_NE(cache_.find(key(1)), nullptr);
  EXPECT_EQ(cache_.stats().expirations_total, 1);
  EXPECT_EQ(cache_.stats().evictions_total, 0);
}

TEST_F(KvCacheTest, ATimeToLiveRunsFromTheEndOfTheLatestUseOrPin) {
  CacheEntry* const entry = cache_.insert_encoding(key(1), 5 * kBlockSize);
  cache_.set_time_to_live(*entry, 7);
  cache_.set_tick(50);
  cache_.mark_ready(*entry);
  cache_.set_tick(100);
  ASSERT_TRUE(cache_.pin(*entry).ok());
  cache_.release(*entry);
  EXPECT_EQ(cache_.describe(*entry).time_left, 7) << "it does not run";
  cache_.set_tick(200);
  cache_.unpin(*entry);
  cache_.set_tick(205);
  EXPECT_EQ(cache_.describe(*entry).time_left, 2);
  use(1);
  cache_.set_tick(212);
  EXPECT_EQ(cache_.find(key(1)), entry);
  cache_.set_time_to_live(*entry, 20);
  cache_.set_tick(232);
  EXPECT_EQ(cache_.find(key(1)), entry);
  cache_.set_time_to_live(*entry, 0);
  EXPECT_FALSE(cache_.describe(*entry).time_left.has_value());
  cache_.set_tick(10'000);
  EXPECT_EQ(cache_.find(key(1)), entry);
}

TEST_F(KvCacheTest, ListsTheDocumentsOfAnOwnerTheLatestUsedFirst) {
  const Digest owner = key(100);
  cache_.set_tick(10);
  for (const int name : {1, 2, 3, 4}) {
    CacheEntry* const entry =
        cache_.insert_encoding(key(name), 20 * name, name == 3 ? key(101) : owner);
    if (name != 4) cache_.list_document(*entry, "first " + std::to_string(name));
    cache_.mark_ready(*entry);
    cache_.release(*entry);
  }
  use(1);
  cache_.list_document(*cache_.find(key(2)), "second 2");
  cache_.list_document(*cache_.find(key(2)), "");
  cache_.set_tick(25);
  const std::vector<DocumentInfo> listed = cache_.documents(owner);
  ASSERT_EQ(listed.size(), 2U) << "one is another's, and one was never given as a document";
  EXPECT_EQ(listed[0].digest, key(1));
  EXPECT_EQ(listed[0].hits, 1);
  EXPECT_EQ(listed[0].num_tokens, 20);
  EXPECT_EQ(listed[0].num_blocks, 2);
  EXPECT_EQ(listed[0].age, 15);
  EXPECT_EQ(listed[1].id, "second 2");
  EXPECT_EQ(listed[1].hits, 0);
  EXPECT_TRUE(cache_.documents(key(102)).empty());
}

// Its duration would tell how many others have, and hold up everybody's steps.
TEST(KvCacheListing, CostsWhatAnOwnerHasHoweverManyOthersHave) {
  constexpr int64_t kOthers = 50'000;
  KvCache cache(kOthers + 2);
  const auto add = [&](int64_t name, const Digest& owner) {
    CacheEntry* const entry = cache.insert_encoding(key(name), kBlockSize, owner);
    cache.list_document(*entry, "");
    cache.mark_ready(*entry);
    cache.release(*entry);
  };
  const auto seconds_to_list = [&](const Digest& owner) {
    double least = 1e9;
    for (int i = 0; i < 20; ++i) {
      const auto start = std::chrono::steady_clock::now();
      EXPECT_EQ(cache.documents(owner).size(), 1U);
      const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
      least = std::min(least, taken.count());
    }
    return least;
  };
  add(-1, key(-10));
  const double alone = seconds_to_list(key(-10));
  for (int64_t name = 0; name < kOthers; ++name) add(name, key(-11));
  EXPECT_LT(seconds_to_list(key(-10)), 50 * alone + 20e-6);
}

TEST_F(KvCacheTest, WhatWasRemovedIsUnknown) {
  add_document(1, 5);
  cache_.remove(*cache_.find(key(1)));
  EXPECT_EQ(cache_.find(key(1)), nullptr);
  EXPECT_EQ(cache_.stats().free_blocks, 20);
}

TEST_F(KvCacheTest, WhatWasRemovedInUseGoesWithItsLastUse) {
  add_document(1, 5);
  CacheEntry* const entry = cache_.find(key(1));
  cache_.list_document(*entry, "gone");
  cache_.acquire(*entry);
  cache_.remove(*entry);
  EXPECT_EQ(cache_.find(key(1)), nullptr);
  EXPECT_TRUE(cache_.documents({}).empty());
  EXPECT_EQ(cache_.stats().free_blocks, 15);
  check();
  CacheEntry* const again = cache_.insert_encoding(key(1), 5 * kBlockSize);
  ASSERT_NE(again, nullptr) << "the next one to ask encodes it anew";
  cache_.remove(*again);
  check();
  EXPECT_TRUE(cache_.release(*entry));
  EXPECT_TRUE(cache_.release(*again));
  EXPECT_EQ(cache_.stats().free_blocks, 20);
}

}  // namespace
}  // namespace anyslot
