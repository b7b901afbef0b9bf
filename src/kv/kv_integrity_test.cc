// check_integrity must see every way in which the cache's books can be wrong.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "kv/kv_cache.h"

namespace anyslot {

/// Lays the books open, so that a test can falsify them.
struct KvCacheTestAccess {
  static BlockPool& pool(KvCache& cache) { return cache.pool_; }
  static EvictionPolicy& policy(KvCache& cache) { return cache.policy_; }
  static std::vector<bool>& is_private(KvCache& cache) { return cache.is_private_; }
  static std::vector<bool>& is_free(KvCache& cache) { return cache.pool_.is_free_; }
  static std::vector<BlockId>& free_list(KvCache& cache) { return cache.pool_.free_; }
  static int64_t& private_blocks(KvCache& cache) { return cache.private_blocks_; }
  static int64_t& pinned_blocks(KvCache& cache) { return cache.pinned_blocks_; }
  static auto& documents(KvCache& cache) { return cache.documents_; }
  static int64_t& referenced_entries(KvCache& cache) { return cache.referenced_entries_; }
  static int64_t& protected_blocks(KvCache& cache) { return cache.policy_.protected_blocks_; }
  static int64_t& level_blocks(KvCache& cache, int level) {
    return cache.policy_.levels_[level].num_blocks;
  }
  static EvictionHandle*& previous(CacheEntry& entry) { return entry.eviction.previous_; }
  static int& level(CacheEntry& entry) { return entry.eviction.level_; }
  static int64_t& order(CacheEntry& entry) { return entry.eviction.order_; }
  static int64_t& num_blocks(EvictionHandle& handle) { return handle.num_blocks_; }
  static void clear_expiries(KvCache& cache) { cache.policy_.by_expiry_.clear(); }
};

namespace {

using Access = KvCacheTestAccess;

Digest key(int64_t name) { return DigestBuilder().add(name).finish(); }

/// A pool of 20 blocks with one of everything; correct until a test falsifies it.
struct Books {
  Books() {
    const auto document = [&](int64_t name, int64_t blocks) -> CacheEntry& {
      return *cache.insert_encoding(key(name), blocks * kBlockSize);
    };
    const auto finish = [&](CacheEntry& entry) {
      cache.mark_ready(entry);
      cache.release(entry);
    };
    finish(document(1, 2));
    finish(document(2, 2));
    finish(document(3, 2));
    finish(document(4, 2));
    cache.acquire(*cache.find(key(1)));
    cache.acquire(used());
    cache.release(used());  // now protected
    cache.set_time_to_live(*cache.find(key(4)), 5);
    (void)cache.pin(*cache.find(key(3)));
    document(5, 2);
    owned = *cache.allocate_private(4);
    cache.adopt_text_block(key(6), owned.back());
    owned.pop_back();
  }
  CacheEntry& referenced() { return *cache.find(key(1)); }
  CacheEntry& used() { return *cache.find(key(2)); }
  CacheEntry& pinned() { return *cache.find(key(3)); }
  CacheEntry& evictable() { return *cache.find(key(4)); }
  CacheEntry& encoding() { return *cache.find(key(5)); }
  CacheEntry& text() { return *cache.find(key(6)); }
  BlockId some_free_block() { return Access::free_list(cache).back(); }

  EvictionHandle stray;  // of no entry
  CacheEntry stranger;   // of no cache
  KvCache cache{20};
  std::vector<BlockId> owned;
};

struct Corruption {
  std::string message;  // part of what check_integrity must say
  std::function<void(Books&)> falsify;
};

std::ostream& operator<<(std::ostream& out, const Corruption& corruption) {
  return out << corruption.message;
}

class CheckIntegrity : public ::testing::TestWithParam<Corruption> {};

TEST_P(CheckIntegrity, Notices) {
  Books books;
  const Status before = books.cache.check_integrity(books.owned);
  ASSERT_TRUE(before.ok()) << before.message();
  GetParam().falsify(books);
  const Status after = books.cache.check_integrity(books.owned);
  EXPECT_EQ(after.code(), StatusCode::kInternal);
  EXPECT_THAT(after.message(), ::testing::HasSubstr(GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    Entries, CheckIntegrity,
    ::testing::Values(
        Corruption{"stands under another digest", [](Books& b) { b.used().digest = key(77); }},
        Corruption{"holds 48 tokens in 2 blocks", [](Books& b) { b.used().num_tokens = 48; }},
        Corruption{"holds 32 tokens in 1 blocks", [](Books& b) { b.used().blocks.pop_back(); }},
        Corruption{"holds 0 tokens in 0 blocks",
                   [](Books& b) {
                     b.used().blocks.clear();
                     b.used().num_tokens = 0;
                   }},
        Corruption{"is a text block that is not full", [](Books& b) { b.text().num_tokens = 15; }},
        Corruption{"has a negative count", [](Books& b) { b.used().refs = -1; }},
        Corruption{"is encoding without a waiter", [](Books& b) { b.encoding().waiters = 0; }},
        Corruption{"or with refs", [](Books& b) { b.encoding().refs = 1; }},
        Corruption{"was removed but is pinned, or kept", [](Books& b) { b.used().removed = true; }},
        Corruption{"was removed but is pinned, or kept",
                   [](Books& b) { b.pinned().removed = true; }},
        Corruption{"is a document that is not listed",
                   [](Books& b) { Access::documents(b.cache).remove(b.used()); }},
        Corruption{"or listed but no document",
                   [](Books& b) { Access::documents(b.cache).add(b.text()); }},
        Corruption{"is ready but has waiters", [](Books& b) { b.referenced().waiters = 1; }},
        Corruption{"is unused but cannot be evicted", [](Books& b) { b.referenced().refs = 0; }},
        Corruption{"is unused but cannot be evicted", [](Books& b) { b.pinned().pins = 0; }},
        Corruption{"is in use or pinned but can be evicted", [](Books& b) { b.used().refs = 1; }},
        Corruption{"is in use or pinned but can be evicted", [](Books& b) { b.used().pins = 1; }},
        Corruption{"differs from what the eviction policy knows",
                   [](Books& b) { b.used().expiry = 9; }}));

INSTANTIATE_TEST_SUITE_P(
    Blocks, CheckIntegrity,
    ::testing::Values(
        Corruption{"does not exist but has an owner", [](Books& b) { b.owned[0] = 20; }},
        Corruption{"does not exist but has an owner", [](Books& b) { b.used().blocks[0] = -1; }},
        Corruption{"has two owners", [](Books& b) { b.owned.push_back(b.owned[0]); }},
        Corruption{"has two owners", [](Books& b) { b.owned[0] = b.used().blocks[0]; }},
        Corruption{"has two owners", [](Books& b) { b.used().blocks[0] = b.pinned().blocks[0]; }},
        Corruption{"is free but cached",
                   [](Books& b) { b.used().blocks[0] = b.some_free_block(); }},
        Corruption{"is free but owned by a caller",
                   [](Books& b) { b.owned[0] = b.some_free_block(); }},
        Corruption{"is free but private",
                   [](Books& b) { Access::is_private(b.cache)[b.some_free_block()] = true; }},
        Corruption{"is cached but private",
                   [](Books& b) { Access::is_private(b.cache)[b.used().blocks[0]] = true; }},
        Corruption{"is owned by a caller but not private",
                   [](Books& b) { Access::is_private(b.cache)[b.owned[0]] = false; }},
        Corruption{"is private but no caller owns it", [](Books& b) { b.owned.pop_back(); }},
        Corruption{"is lost: neither free, nor private, nor cached",
                   [](Books& b) { Access::pool(b.cache).allocate(1); }},
        Corruption{"is lost: neither free, nor private, nor cached",
                   [](Books& b) {
                     Access::is_private(b.cache)[b.owned.back()] = false;
                     b.owned.pop_back();
                   }},
        Corruption{"free blocks: ", [](Books& b) { Access::free_list(b.cache).pop_back(); }},
        Corruption{"private blocks: 4 counted, 3 found",
                   [](Books& b) { ++Access::private_blocks(b.cache); }}));

INSTANTIATE_TEST_SUITE_P(
    Counters, CheckIntegrity,
    ::testing::Values(Corruption{"document entries: 6 counted, 5 found",
                                 [](Books& b) { Access::documents(b.cache).add(b.stranger); }},
                      Corruption{"referenced entries: 4 counted, 3 found",
                                 [](Books& b) { ++Access::referenced_entries(b.cache); }},
                      Corruption{"pinned blocks: 3 counted, 2 found",
                                 [](Books& b) { ++Access::pinned_blocks(b.cache); }},
                      Corruption{
                          "evictable blocks: 5 counted, 4 found",
                          [](Books& b) { Access::policy(b.cache).insert(b.stray, nullptr, 1, 0); }},
                      Corruption{"11 blocks of 20 are pinned, more than half", [](Books& b) {
                                   CacheEntry* const large =
                                       b.cache.insert_encoding(key(7), 7 * kBlockSize);
                                   b.cache.mark_ready(*large);
                                   large->pins = b.referenced().pins = 1;
                                   Access::pinned_blocks(b.cache) = 11;
                                 }}));

INSTANTIATE_TEST_SUITE_P(
    Eviction, CheckIntegrity,
    ::testing::Values(Corruption{"level 1: its links do not match",
                                 [](Books& b) { Access::previous(b.used()) = nullptr; }},
                      Corruption{"level 1: an entry of level 2 stands in it",
                                 [](Books& b) { Access::level(b.used()) = 2; }},
                      Corruption{"level 0: 3 blocks counted, 2 found",
                                 [](Books& b) { ++Access::level_blocks(b.cache, 0); }},
                      Corruption{"protected blocks: 3 counted, 2 found",
                                 [](Books& b) { ++Access::protected_blocks(b.cache); }},
                      Corruption{"protected blocks: 18 of 20 are more than 80%",
                                 [](Books& b) {
                                   Access::policy(b.cache).count_use(b.stray);
                                   Access::policy(b.cache).insert(b.stray, nullptr, 1, 0);
                                   Access::num_blocks(b.stray) += 15;
                                   Access::level_blocks(b.cache, 1) += 15;
                                   Access::protected_blocks(b.cache) += 15;
                                 }},
                      Corruption{"expiries: an entry is indexed under one that it does not have",
                                 [](Books& b) { ++Access::order(b.evictable()); }},
                      Corruption{"expiries: 0 indexed, 1 found",
                                 [](Books& b) { Access::clear_expiries(b.cache); }}));

}  // namespace
}  // namespace anyslot
