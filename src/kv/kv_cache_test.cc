#include "kv/kv_cache.h"

#include <gmock/gmock.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "kv/test_kv_cache.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

TEST_F(KvCacheTest, EncodesOnceForAllWaiters) {
  CacheEntry* const entry = cache_.insert_encoding(key(1), 40);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->state, EntryState::kEncoding);
  EXPECT_EQ(entry->blocks.size(), 3U) << "40 tokens in blocks of 16";
  EXPECT_EQ(entry->num_tokens, 40);
  EXPECT_EQ(cache_.find(key(1)), entry);
  cache_.acquire(*entry);
  cache_.acquire(*entry);
  EXPECT_EQ(entry->waiters, 3);
  EXPECT_FALSE(cache_.release(*entry)) << "two still wait";
  check();
  cache_.mark_ready(*entry);
  EXPECT_EQ(entry->refs, 2);
  EXPECT_EQ(entry->waiters, 0);
  check();
  EXPECT_FALSE(cache_.release(*entry));
  EXPECT_EQ(cache_.stats().referenced_entries, 1);
  EXPECT_EQ(cache_.stats().evictable_blocks, 0);
  EXPECT_FALSE(cache_.release(*entry)) << "a ready entry stays cached";
  EXPECT_EQ(cache_.stats().referenced_entries, 0);
  EXPECT_EQ(cache_.stats().evictable_blocks, 3);
  EXPECT_EQ(cache_.find(key(1)), entry);
}

TEST_F(KvCacheTest, DropsAnEncodingWithItsLastWaiter) {
  CacheEntry* const entry = cache_.insert_encoding(key(1), 40);
  cache_.acquire(*entry);
  EXPECT_FALSE(cache_.release(*entry));
  EXPECT_TRUE(cache_.release(*entry));
  EXPECT_EQ(cache_.find(key(1)), nullptr);
  EXPECT_EQ(cache_.stats().free_blocks, 20);
  EXPECT_EQ(cache_.stats().document_entries, 0);
  EXPECT_EQ(cache_.stats().evictions_total, 0) << "a drop is no eviction";
  EXPECT_NE(cache_.insert_encoding(key(1), 40), nullptr) << "it may be encoded again";
}

TEST_F(KvCacheTest, CountsWhatAnAdmissionMayTake) {
  add_document(1, 5);
  add_document(2, 3);
  allocate(4);
  CacheEntry* const encoding = cache_.insert_encoding(key(3), 2 * kBlockSize);
  CacheEntry& first = *cache_.find(key(1));
  CacheEntry& second = *cache_.find(key(2));
  EXPECT_EQ(cache_.available_blocks(), 14) << "20 less 4 private and 2 encoding";
  EXPECT_EQ(cache_.evictable_blocks(first), 5);
  EXPECT_EQ(cache_.evictable_blocks(*encoding), 0);
  cache_.acquire(first);
  EXPECT_EQ(cache_.evictable_blocks(first), 0);
  EXPECT_EQ(cache_.available_blocks(), 9);
  cache_.acquire(first);
  EXPECT_EQ(cache_.available_blocks(), 9) << "a second use takes nothing more";
  ASSERT_TRUE(cache_.pin(second).ok());
  EXPECT_EQ(cache_.evictable_blocks(second), 0);
  EXPECT_EQ(cache_.available_blocks(), 6);

  EXPECT_FALSE(cache_.allocate_private(7).has_value());
  allocate(6);
  EXPECT_EQ(cache_.available_blocks(), 0);
  cache_.release(first);
  EXPECT_EQ(cache_.available_blocks(), 0);
  cache_.release(first);
  EXPECT_EQ(cache_.available_blocks(), 5);
  cache_.unpin(second);
  EXPECT_EQ(cache_.available_blocks(), 8);
  const KvCacheStats stats = cache_.stats();
  EXPECT_EQ(stats.total_blocks, 20);
  EXPECT_EQ(stats.free_blocks, 0);
  EXPECT_EQ(stats.evictable_blocks, 8);
  EXPECT_EQ(stats.private_blocks, 10);
  EXPECT_EQ(stats.pinned_blocks, 0);
  EXPECT_EQ(stats.document_entries, 3);
  EXPECT_EQ(stats.referenced_entries, 1);
}

TEST_F(KvCacheTest, WhatDoesNotFitChangesNothing) {
  add_document(1, 5);
  add_document(2, 5);
  allocate(4);
  cache_.acquire(*cache_.find(key(1)));
  EXPECT_EQ(cache_.available_blocks(), 11);
  EXPECT_EQ(cache_.insert_encoding(key(3), 11 * kBlockSize + 1), nullptr);
  EXPECT_FALSE(cache_.allocate_private(12).has_value());
  EXPECT_EQ(cache_.find(key(3)), nullptr);
  EXPECT_NE(cache_.find(key(2)), nullptr) << "nothing may be evicted for what cannot fit";
  EXPECT_EQ(cache_.available_blocks(), 11);
  EXPECT_EQ(cache_.stats().evictions_total, 0);
  check();
  EXPECT_NE(cache_.insert_encoding(key(3), 11 * kBlockSize), nullptr);
  EXPECT_EQ(cache_.find(key(2)), nullptr);
  EXPECT_EQ(cache_.stats().evictions_total, 1);
}

TEST_F(KvCacheTest, EvictsNoMoreThanNeeded) {
  for (int name = 0; name < 4; ++name) add_document(name, 5);
  allocate(6);
  EXPECT_EQ(cache_.find(key(0)), nullptr);
  EXPECT_EQ(cache_.find(key(1)), nullptr);
  EXPECT_NE(cache_.find(key(2)), nullptr);
  EXPECT_NE(cache_.find(key(3)), nullptr);
  EXPECT_EQ(cache_.stats().free_blocks, 4);
}

TEST_F(KvCacheTest, ADocumentUsedOftenSurvivesAFlood) {
  for (const int uses_of_flood : {1, 2}) {
    add_document(0, 4);
    for (int i = 0; i < 1000; ++i) use(0);
    for (int name = 1; name <= 100; ++name) {  // ten pools
      add_document(1000 * uses_of_flood + name, 2);
      for (int i = 1; i < uses_of_flood; ++i) use(1000 * uses_of_flood + name);
    }
    EXPECT_NE(cache_.find(key(0)), nullptr) << "flood documents used " << uses_of_flood << " times";
    allocate(20);
    EXPECT_EQ(cache_.find(key(0)), nullptr) << "it goes when all room is needed";
    cache_.free_private(owned_);
    owned_.clear();
  }
}

TEST_F(KvCacheTest, JoiningAnEncodingCountsAsAUse) {
  CacheEntry* const joined = cache_.insert_encoding(key(0), 4 * kBlockSize);
  cache_.acquire(*joined);
  cache_.mark_ready(*joined);
  cache_.release(*joined);
  cache_.release(*joined);
  for (int name = 1; name <= 20; ++name) add_document(name, 2);
  EXPECT_NE(cache_.find(key(0)), nullptr);
}

TEST_F(KvCacheTest, HandsOutSinglePrivateBlocks) {
  allocate(14);
  add_document(1, 5);
  for (int i = 0; i < 6; ++i) {
    const auto block = cache_.allocate_private_block();
    ASSERT_TRUE(block.has_value());
    owned_.push_back(*block);
    check();
  }
  EXPECT_EQ(cache_.find(key(1)), nullptr) << "it had to make room";
  EXPECT_FALSE(cache_.allocate_private_block().has_value());
}

TEST_F(KvCacheTest, AdoptsAPrivateBlockOnce) {
  allocate(2);
  CacheEntry* const entry = cache_.adopt_text_block(key(1), owned_[0]);
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(entry->kind, EntryKind::kTextBlock);
  EXPECT_EQ(entry->state, EntryState::kReady);
  EXPECT_EQ(entry->blocks, (std::vector<BlockId>{owned_[0]}));
  EXPECT_EQ(entry->num_tokens, kBlockSize);
  EXPECT_EQ(entry->refs, 1);

  EXPECT_EQ(cache_.adopt_text_block(key(1), owned_[1]), nullptr) << "another request was first";
  EXPECT_EQ(entry->refs, 1);
  owned_.erase(owned_.begin());
  check();
  EXPECT_EQ(cache_.stats().private_blocks, 1);
  EXPECT_EQ(cache_.stats().text_entries, 1);
  cache_.release(*entry);
  EXPECT_EQ(cache_.stats().evictable_blocks, 1);
}

class TextRun : public KvCacheTest {
 protected:
  /// Caches the blocks of the chain whose numbers are given.
  void cache_blocks(const std::vector<int>& numbers) {
    for (const int number : numbers) {
      allocate(1);
      entries_.push_back(cache_.adopt_text_block(chain_key(number), owned_.back()));
      ASSERT_NE(entries_.back(), nullptr);
      owned_.pop_back();
    }
  }
  Digest chain_key(int number) const {
    Digest chain = root_;
    for (int i = 0; i <= number; ++i) {
      chain = block_key(chain, std::span(tokens_).subspan(i * kBlockSize, kBlockSize));
    }
    return chain;
  }
  static std::vector<int32_t> some_tokens() {
    std::vector<int32_t> ids(4 * kBlockSize + 5);
    for (size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<int32_t>(7 * i % 11);
    return ids;
  }

  const Digest root_ = text_chain_root({key(99), ""}, "turned", "");
  const std::vector<int32_t> tokens_ = some_tokens();
  std::vector<CacheEntry*> entries_;
};

TEST_F(TextRun, FindsFullBlocksOfTheSameChainOnly) {
  EXPECT_TRUE(cache_.find_text_run(block_keys(root_, tokens_)).empty());
  cache_blocks({0, 1, 2, 3});
  EXPECT_EQ(cache_.find_text_run(block_keys(root_, tokens_)), entries_)
      << "the five last tokens fill no block";
  EXPECT_TRUE(cache_.find_text_run({}).empty());
  EXPECT_EQ(
      cache_.find_text_run(block_keys(root_, std::span(tokens_).first(2 * kBlockSize - 1))).size(),
      1U);
  EXPECT_TRUE(cache_.find_text_run(block_keys(key(98), tokens_)).empty());
  std::vector<int32_t> changed = tokens_;
  ++changed[kBlockSize];
  EXPECT_EQ(cache_.find_text_run(block_keys(root_, changed)).size(), 1U);
  for (const CacheEntry* entry : entries_)
    EXPECT_EQ(entry->refs, 1) << "a look-up acquires nothing";
}

TEST_F(TextRun, StopsAtTheFirstGap) {
  cache_blocks({0, 1, 3});
  EXPECT_EQ(cache_.find_text_run(block_keys(root_, tokens_)).size(), 2U);
}

TEST_F(TextRun, StopsAtAnEntryThatIsNotReady) {
  cache_blocks({0});
  CacheEntry* const encoding = cache_.insert_encoding(chain_key(1), kBlockSize);
  cache_blocks({2});
  EXPECT_EQ(cache_.find_text_run(block_keys(root_, tokens_)).size(), 1U);
  cache_.mark_ready(*encoding);
  EXPECT_EQ(cache_.find_text_run(block_keys(root_, tokens_)).size(), 3U);
}

TEST_F(TextRun, IsEvictedFromItsEnd) {
  cache_blocks({0, 1, 2, 3});
  for (size_t i = entries_.size(); i-- > 0;) cache_.release(*entries_[i]);
  allocate(16);
  for (size_t left = 4; left-- > 0;) {
    allocate(1);
    EXPECT_EQ(cache_.find_text_run(block_keys(root_, tokens_)).size(), left);
    EXPECT_EQ(cache_.stats().text_entries, static_cast<int64_t>(left));
  }
}

TEST_F(KvCacheTest, FaultsOfTheCallerThrowAndChangeNothing) {
  add_document(1, 2);
  allocate(3);
  CacheEntry& entry = *cache_.find(key(1));
  const BlockId cached = entry.blocks[0];
  EXPECT_THROW(cache_.insert_encoding(key(1), 5), std::logic_error);
  EXPECT_THROW(cache_.insert_encoding(key(2), 0), std::logic_error);
  EXPECT_THROW(cache_.release(entry), std::logic_error);
  EXPECT_THROW(cache_.mark_ready(entry), std::logic_error);
  EXPECT_THROW(cache_.unpin(entry), std::logic_error);
  EXPECT_THROW((void)cache_.allocate_private(-1), std::logic_error);
  EXPECT_THROW(cache_.adopt_text_block(key(3), cached), std::logic_error);
  for (const BlockId bad : {cached, BlockId{19}, BlockId{20}, BlockId{-1}, owned_[0]}) {
    EXPECT_THROW(cache_.free_private(std::vector<BlockId>{owned_[0], bad}), std::logic_error)
        << bad;
  }
  check();
  const std::vector<BlockId> freed = owned_;
  cache_.free_private(freed);
  owned_.clear();
  EXPECT_THROW(cache_.free_private(freed), std::logic_error) << "freed twice";
  EXPECT_THROW(cache_.adopt_text_block(key(3), freed[0]), std::logic_error);
  EXPECT_THROW(KvCache(-1), std::logic_error);
}

}  // namespace
}  // namespace anyslot