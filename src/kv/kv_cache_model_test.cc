// KvCache against a model that is too simple to be wrong: random calls, everything compared after
// each.

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <random>
#include <vector>

#include "kv/kv_cache.h"

namespace anyslot {
namespace {

Digest key(int64_t name) { return DigestBuilder().add(name).finish(); }

struct ModelEntry {
  bool text = false;
  bool ready = false;
  int64_t num_tokens = 0;
  int refs = 0;
  int waiters = 0;
  int pins = 0;
  int64_t time_to_live = 0;
  int64_t unused_since = 0;  // tick

  int64_t num_blocks() const { return (num_tokens + kBlockSize - 1) / kBlockSize; }
  bool used() const { return refs > 0 || waiters > 0; }
  bool evictable() const { return !used() && pins == 0; }
};

class RandomCalls {
 public:
  RandomCalls(uint32_t seed, int64_t num_blocks)
      : random_(seed), num_blocks_(num_blocks), cache_(num_blocks) {}

  void step() {
    if (pick(20) == 0) advance();
    const int action = pick(100);
    if (action < 20) {
      insert();
    } else if (action < 32) {
      adopt();
    } else if (action < 42) {
      allocate();
    } else if (action < 52) {
      free_some();
    } else if (!entries_.empty()) {
      use_some_entry(action);
    }
    compare();
  }

 private:
  using Entries = std::map<int, ModelEntry>;

  void advance() {
    cache_.set_tick(++tick_);
    expirations_ += static_cast<int64_t>(std::erase_if(entries_, [this](const auto& named) {
      const ModelEntry& entry = named.second;
      return entry.evictable() && entry.time_to_live > 0 &&
             tick_ > entry.unused_since + entry.time_to_live;
    }));
  }

  void set_time_to_live(ModelEntry& model, CacheEntry& entry) {
    model.time_to_live = pick(2) == 0 ? 0 : 1 + pick(9);
    model.unused_since = tick_;
    cache_.set_time_to_live(entry, model.time_to_live);
  }

  int pick(int64_t below) { return static_cast<int>(random_() % static_cast<uint64_t>(below)); }

  int64_t free_blocks() const {
    int64_t taken = static_cast<int64_t>(private_.size());
    for (const auto& [name, entry] : entries_) taken += entry.num_blocks();
    return num_blocks_ - taken;
  }
  int64_t evictable_blocks() const {
    int64_t sum = 0;
    for (const auto& [name, entry] : entries_) sum += entry.evictable() ? entry.num_blocks() : 0;
    return sum;
  }

  /// What an allocation of `count` blocks evicted is whatever is missing now: evictable, and no
  /// more than needed.
  void take_over_evictions(int64_t count) {
    const int64_t free_before = free_blocks();
    int64_t evicted = 0;
    int64_t largest = 0;
    for (auto at = entries_.begin(); at != entries_.end();) {
      if (cache_.find(key(at->first)) != nullptr) {
        ++at;
        continue;
      }
      ASSERT_TRUE(at->second.evictable()) << "entry " << at->first << " was evicted";
      evicted += at->second.num_blocks();
      largest = std::max(largest, at->second.num_blocks());
      ++evictions_;
      at = entries_.erase(at);
    }
    if (evicted > 0) {
      ASSERT_LT(free_before, count);
      ASSERT_LT(free_before + evicted - largest, count) << "the last victim was not needed";
    }
    ASSERT_GE(free_before + evicted, count);
  }

  void insert() {
    const int name = pick(40);
    if (entries_.contains(name)) return;
    const int64_t num_tokens =
        1 + pick(pick(4) == 0 ? num_blocks_ * kBlockSize * 5 / 4 : 5 * kBlockSize);
    const ModelEntry entry{.num_tokens = num_tokens, .waiters = 1};
    const bool fits = entry.num_blocks() <= free_blocks() + evictable_blocks();
    CacheEntry* const inserted = cache_.insert_encoding(key(name), num_tokens);
    ASSERT_EQ(inserted != nullptr, fits);
    if (!fits) return;
    take_over_evictions(entry.num_blocks());
    entries_[name] = entry;
    if (pick(3) == 0) set_time_to_live(entries_[name], *inserted);
  }

  void adopt() {
    if (private_.empty()) return;
    const int name = 100 + pick(20);
    const size_t index = pick(private_.size());
    CacheEntry* const adopted = cache_.adopt_text_block(key(name), private_[index]);
    ASSERT_EQ(adopted == nullptr, entries_.contains(name));
    if (adopted == nullptr) return;
    ASSERT_EQ(adopted->blocks, std::vector<BlockId>{private_[index]});
    private_.erase(private_.begin() + static_cast<std::ptrdiff_t>(index));
    entries_[name] = {.text = true, .ready = true, .num_tokens = kBlockSize, .refs = 1};
  }

  void allocate() {
    const int64_t count = pick(pick(4) == 0 ? num_blocks_ : 6);
    const bool fits = count <= free_blocks() + evictable_blocks();
    const auto blocks = cache_.allocate_private(count);
    ASSERT_EQ(blocks.has_value(), fits);
    if (!fits) return;
    take_over_evictions(count);
    ASSERT_EQ(static_cast<int64_t>(blocks->size()), count);
    private_.insert(private_.end(), blocks->begin(), blocks->end());
  }

  void free_some() {
    std::shuffle(private_.begin(), private_.end(), random_);
    const size_t count = pick(private_.size() + 1);
    cache_.free_private(std::span(private_).first(count));
    private_.erase(private_.begin(), private_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  void use_some_entry(int action) {
    const auto chosen = std::next(entries_.begin(), pick(entries_.size()));
    ModelEntry& model = chosen->second;
    CacheEntry& entry = *cache_.find(key(chosen->first));
    if (action < 62) {
      cache_.acquire(entry);
      ++(model.ready ? model.refs : model.waiters);
    } else if (action < 85 && model.used()) {
      --(model.ready ? model.refs : model.waiters);
      const bool dropped = !model.ready && model.waiters == 0;
      model.unused_since = tick_;
      ASSERT_EQ(cache_.release(entry), dropped);
      if (dropped) entries_.erase(chosen);
    } else if (action < 90 && !model.ready) {
      cache_.mark_ready(entry);
      model.ready = true;
      std::swap(model.refs, model.waiters);
    } else if (action < 94) {
      pin(model, entry);
    } else if (action < 98 && model.pins > 0) {
      cache_.unpin(entry);
      --model.pins;
      model.unused_since = tick_;
    } else if (pick(4) > 0) {
      set_time_to_live(model, entry);
    } else if (!model.used() && model.pins == 0) {
      cache_.remove(entry);
      entries_.erase(chosen);
    }
  }

  void pin(ModelEntry& model, CacheEntry& entry) {
    int64_t pinned = model.pins > 0 ? 0 : model.num_blocks();
    for (const auto& [name, other] : entries_) pinned += other.pins > 0 ? other.num_blocks() : 0;
    const bool allowed = model.pins > 0 || 2 * pinned <= num_blocks_;
    ASSERT_EQ(cache_.pin(entry).ok(), allowed);
    if (allowed) ++model.pins;
  }

  void compare() {
    const Status status = cache_.check_integrity(private_);
    ASSERT_TRUE(status.ok()) << status.message();
    int64_t texts = 0, used = 0;
    for (const auto& [name, model] : entries_) {
      const CacheEntry* const entry = cache_.find(key(name));
      ASSERT_NE(entry, nullptr) << "entry " << name;
      ASSERT_EQ(entry->kind == EntryKind::kTextBlock, model.text);
      ASSERT_EQ(entry->state == EntryState::kReady, model.ready);
      ASSERT_EQ(entry->num_tokens, model.num_tokens);
      ASSERT_EQ(static_cast<int64_t>(entry->blocks.size()), model.num_blocks());
      ASSERT_EQ(entry->refs, model.refs);
      ASSERT_EQ(entry->waiters, model.waiters);
      ASSERT_EQ(entry->pins, model.pins);
      ASSERT_EQ(cache_.evictable_blocks(*entry), model.evictable() ? model.num_blocks() : 0);
      texts += model.text;
      used += model.used();
    }
    ASSERT_EQ(cache_.available_blocks(), free_blocks() + evictable_blocks());
    const KvCacheStats stats = cache_.stats();
    ASSERT_EQ(stats.total_blocks, num_blocks_);
    ASSERT_EQ(stats.free_blocks, free_blocks());
    ASSERT_EQ(stats.evictable_blocks, evictable_blocks());
    ASSERT_EQ(stats.private_blocks, static_cast<int64_t>(private_.size()));
    ASSERT_EQ(stats.document_entries, static_cast<int64_t>(entries_.size()) - texts);
    ASSERT_EQ(stats.text_entries, texts);
    ASSERT_EQ(stats.referenced_entries, used);
    ASSERT_EQ(stats.evictions_total, evictions_);
    ASSERT_EQ(stats.expirations_total, expirations_);
  }

  std::mt19937 random_;
  int64_t num_blocks_;
  KvCache cache_;
  Entries entries_;
  std::vector<BlockId> private_;
  int64_t evictions_ = 0;
  int64_t expirations_ = 0;
  int64_t tick_ = 0;
};

TEST(KvCacheModel, AgreesAfterEveryCall) {
  const uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  for (const int64_t num_blocks : {1, 7, 40, 120}) {
    RandomCalls calls(seed, num_blocks);
    for (int step = 0; step < 5000; ++step) {
      calls.step();
      if (::testing::Test::HasFatalFailure()) {
        FAIL() << "pool of " << num_blocks << " blocks, step " << step << ", seed " << seed;
      }
    }
  }
}

}  // namespace
}  // namespace anyslot
