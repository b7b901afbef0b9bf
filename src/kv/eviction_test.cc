#include "kv/eviction.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

#include "kv/kv_cache.h"

namespace anyslot {
namespace {

/// Entries of one block each unless told otherwise, named by number.
class Policy {
 public:
  explicit Policy(int64_t pool_blocks) : policy(pool_blocks) {}

  /// Makes entry `id` evictable after `more_uses` uses beyond what it had.
  void put(int id, int more_uses = 0, int64_t expiry = 0, int64_t num_blocks = 1) {
    for (int i = 0; i < more_uses; ++i) policy.count_use(entry(id).eviction);
    policy.insert(entry(id).eviction, &entry(id), num_blocks, expiry);
  }
  void touch(int id) {
    policy.remove(entry(id).eviction);
    put(id, 1);
  }
  /// The next victim, or -1. Its handle is as new afterwards: an evicted document comes back as
  /// another entry.
  int evict() {
    CacheEntry* const victim = policy.evict();
    if (victim == nullptr) return -1;
    const auto found = std::find_if(entries_.begin(), entries_.end(),
                                    [&](const auto& owned) { return owned.get() == victim; });
    *found = std::make_unique<CacheEntry>();
    return static_cast<int>(found - entries_.begin());
  }
  std::vector<int> evict_all() {
    std::vector<int> order;
    for (int id = evict(); id != -1; id = evict()) order.push_back(id);
    return order;
  }
  CacheEntry& entry(int id) {
    while (static_cast<int>(entries_.size()) <= id)
      entries_.push_back(std::make_unique<CacheEntry>());
    return *entries_[id];
  }
  bool holds(int id) { return policy.contains(entry(id).eviction); }

  EvictionPolicy policy;

 private:
  std::vector<std::unique_ptr<CacheEntry>> entries_;
};

TEST(EvictionPolicy, EvictsTheLeastRecentOfThoseUsedOnce) {
  Policy p(10);
  for (int id = 0; id < 4; ++id) p.put(id);
  EXPECT_EQ(p.evict_all(), (std::vector<int>{0, 1, 2, 3}));
  EXPECT_EQ(p.evict(), -1);
}

TEST(EvictionPolicy, EvictsProbationBeforeProtected) {
  Policy p(10);
  p.put(0, 1);
  p.put(1);
  p.put(2, 1);
  p.put(3);
  EXPECT_EQ(p.policy.protected_blocks(), 2);
  EXPECT_EQ(p.policy.probation_blocks(), 2);
  EXPECT_EQ(p.evict_all(), (std::vector<int>{1, 3, 0, 2}));
}

TEST(EvictionPolicy, EvictsExpiredEntriesFirstInOrderOfExpiry) {
  Policy p(10);
  p.put(0);
  p.put(1, 5, 20);
  p.put(2, 1, 10);
  p.put(3, 1, 30);
  p.put(4, 3, 10);
  p.policy.set_tick(10);
  EXPECT_EQ(p.evict(), 0) << "at its expiry an entry has not expired yet";
  p.policy.set_tick(21);
  EXPECT_EQ(p.evict_all(), (std::vector<int>{2, 4, 1, 3}));
}

TEST(EvictionPolicy, ChangedExpiryCounts) {
  Policy p(10);
  p.put(0);
  p.put(1, 0, 5);
  p.put(2);
  p.policy.set_expiry(p.entry(1).eviction, 0);
  p.policy.set_expiry(p.entry(2).eviction, 7);
  p.policy.set_tick(8);
  EXPECT_TRUE(p.policy.check_integrity().ok());
  EXPECT_EQ(p.evict_all(), (std::vector<int>{2, 0, 1}));
}

TEST(EvictionPolicy, ProtectedHoldsAtMostFourFifths) {
  Policy p(10);
  for (int id = 0; id < 8; ++id) p.put(id, 1);
  EXPECT_EQ(p.policy.protected_blocks(), 8);
  p.put(8);
  p.put(9, 1);
  EXPECT_EQ(p.policy.protected_blocks(), 8);
  EXPECT_EQ(p.policy.probation_blocks(), 2);
  // 0 was demoted to the head of probation, so 8 goes before it.
  EXPECT_EQ(p.evict_all(), (std::vector<int>{8, 0, 1, 2, 3, 4, 5, 6, 7, 9}));
}

TEST(EvictionPolicy, AnEntryLargerThanProtectedStaysOnProbation) {
  Policy p(10);
  p.put(0, 4, 0, 9);
  EXPECT_EQ(p.policy.protected_blocks(), 0);
  EXPECT_EQ(p.policy.probation_blocks(), 9);
  EXPECT_EQ(p.evict(), 0);
}

TEST(EvictionPolicy, ChainsGoLeafFirst) {
  // Blocks 0..4 of a chain are released from the end, by a request that used all five, then by one
  // that used three of them.
  Policy p(10);
  for (int id = 4; id >= 0; --id) p.put(id);
  for (int id = 0; id < 3; ++id) p.policy.remove(p.entry(id).eviction);
  for (int id = 2; id >= 0; --id) p.put(id, 1);
  EXPECT_EQ(p.evict_all(), (std::vector<int>{4, 3, 2, 1, 0}));
}

TEST(EvictionPolicy, ChainsStayConnectedWhateverTheirUse) {
  const uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  constexpr int kChains = 12;
  constexpr int kLength = 8;
  Policy p(50);
  std::vector<int> cached(kChains, 0);  // how many blocks of each chain, from its start
  for (int step = 0; step < 20000; ++step) {
    // A request uses the start of a chain: what is cached is taken out, the rest is new.
    const int chain = static_cast<int>(std::min(random() % kChains, random() % kChains));
    const int used = 1 + static_cast<int>(random() % kLength);
    const int reused = std::min(used, cached[chain]);
    for (int i = 0; i < reused; ++i) p.policy.remove(p.entry(chain * kLength + i).eviction);
    while (p.policy.evictable_blocks() + used > 50) {
      const int victim = p.evict();
      ASSERT_EQ(victim % kLength, --cached[victim / kLength]) << "not the last of its chain";
    }
    for (int i = used; i-- > 0;) p.put(chain * kLength + i, i < reused ? 1 : 0);
    cached[chain] = std::max(used, cached[chain]);
  }
}

/// Floods a full pool of 100 blocks with documents of 5 blocks, each used `uses` times in a row.
void flood(Policy& p, int first_id, int count, int uses) {
  for (int id = first_id; id < first_id + count; ++id) {
    while (p.policy.evictable_blocks() + 5 > 100) p.evict();
    p.put(id, 0, 0, 5);
    for (int i = 1; i < uses; ++i) {
      p.policy.remove(p.entry(id).eviction);
      p.put(id, 1, 0, 5);
    }
  }
}

TEST(EvictionPolicy, AnEntryUsedOftenSurvivesFloods) {
  for (const int uses : {1, 2, 3, 10}) {
    Policy p(100);
    p.put(0, 1000);
    flood(p, 1, 200, uses);  // ten pools
    EXPECT_TRUE(p.holds(0)) << "each document used " << uses << " times";
  }
}

TEST(EvictionPolicy, AnEntryOnceUsedOftenDoesNotStayForEver) {
  Policy p(100);
  p.put(0, 1000);
  flood(p, 1, 20 * EvictionPolicy::kAgingTurnovers * (EvictionPolicy::kLevels + 1), 2);
  EXPECT_FALSE(p.holds(0));
}

TEST(EvictionPolicy, MisuseThrowsAndChangesNothing) {
  Policy p(10);
  p.put(0);
  EXPECT_THROW(p.put(0), std::logic_error);
  EXPECT_THROW(p.policy.remove(p.entry(1).eviction), std::logic_error);
  EXPECT_THROW(p.policy.set_expiry(p.entry(1).eviction, 3), std::logic_error);
  EXPECT_TRUE(p.policy.check_integrity().ok());
  EXPECT_EQ(p.evict_all(), (std::vector<int>{0}));
}

/// The same rules in the plainest form: one list for each level, uses halved for every entry at
/// once.
class ObviousPolicy {
 public:
  struct Entry {
    int64_t num_blocks = 0;
    int64_t expiry = 0;
    int64_t order = 0;
    int uses = 1;
  };
  explicit ObviousPolicy(int64_t pool_blocks, int num_entries)
      : pool_blocks_(pool_blocks), entries(num_entries), levels_(EvictionPolicy::kLevels) {}

  void insert(int id) {
    entries[id].order = next_order_++;
    int level = 0;
    while (level + 1 < EvictionPolicy::kLevels && entries[id].uses >> (level + 1) > 0) ++level;
    levels_[level].push_back(id);
    while (100 * protected_blocks() > EvictionPolicy::kProtectedPercent * pool_blocks_) {
      const auto lowest = std::find_if(levels_.begin() + 1, levels_.end(),
                                       [](const auto& queue) { return !queue.empty(); });
      levels_[0].push_back(lowest->front());
      lowest->erase(lowest->begin());
    }
  }
  void remove(int id) {
    for (auto& queue : levels_)
      queue.erase(std::remove(queue.begin(), queue.end(), id), queue.end());
  }
  int evict(int64_t tick) {
    int victim = -1;
    for (const auto& queue : levels_) {
      for (const int id : queue) {
        const auto key = [&](int i) { return std::pair(entries[i].expiry, entries[i].order); };
        if (entries[id].expiry == 0 || entries[id].expiry >= tick) continue;
        if (victim == -1 || key(id) < key(victim)) victim = id;
      }
    }
    for (const auto& queue : levels_) {
      if (victim == -1 && !queue.empty()) victim = queue.front();
    }
    if (victim == -1) return -1;
    remove(victim);
    evicted_ += entries[victim].num_blocks;
    if (evicted_ >= EvictionPolicy::kAgingTurnovers * pool_blocks_) grow_old();
    return victim;
  }
  int64_t protected_blocks() const {
    int64_t sum = 0;
    for (size_t level = 1; level < levels_.size(); ++level) {
      for (const int id : levels_[level]) sum += entries[id].num_blocks;
    }
    return sum;
  }

 private:
  void grow_old() {
    evicted_ = 0;
    for (Entry& entry : entries) entry.uses = std::max(1, entry.uses / 2);
    for (size_t level = 1; level < levels_.size(); ++level) {
      auto& below = levels_[level - 1];
      below.insert(below.end(), levels_[level].begin(), levels_[level].end());
      levels_[level].clear();
    }
  }

  int64_t pool_blocks_;
  int64_t evicted_ = 0;
  int64_t next_order_ = 0;

 public:
  std::vector<Entry> entries;

 private:
  std::vector<std::vector<int>> levels_;  // least recent first
};

TEST(EvictionPolicy, AgreesWithTheObviousOne) {
  const uint32_t seed = std::random_device{}();
  std::cout << "seed " << seed << '\n';
  std::mt19937 random(seed);
  const auto pick = [&](int below) {
    return static_cast<int>(random() % static_cast<uint32_t>(below));
  };
  constexpr int kEntries = 40;
  constexpr int64_t kPool = 60;
  Policy p(kPool);
  ObviousPolicy model(kPool, kEntries);
  std::vector<bool> evictable(kEntries, false);
  int64_t tick = 0;
  for (int step = 0; step < 60000; ++step) {
    const int id = pick(kEntries);
    const int action = pick(100);
    auto& entry = model.entries[id];
    if (action < 60) {  // used, more often by some than by others, then released
      if (evictable[id]) {
        p.policy.remove(p.entry(id).eviction);
        model.remove(id);
      }
      const int uses = pick(3) == 0 ? pick(1 + id * 4) : pick(2);
      entry.num_blocks = 1 + id % 4;
      entry.expiry = pick(4) == 0 ? tick + pick(400) : 0;
      entry.uses = std::min(entry.uses + uses, EvictionPolicy::kMaxUses);
      evictable[id] = true;
      p.put(id, uses, entry.expiry, entry.num_blocks);
      model.insert(id);
    } else if (action < 65 && evictable[id]) {
      p.policy.remove(p.entry(id).eviction);
      model.remove(id);
      evictable[id] = false;
    } else if (action < 98) {
      const int victim = model.evict(tick);
      ASSERT_EQ(p.evict(), victim) << "step " << step;
      if (victim != -1) {
        evictable[victim] = false;
        model.entries[victim].uses = 1;
      }
    } else {
      p.policy.set_tick(++tick);
    }
    ASSERT_EQ(p.policy.protected_blocks(), model.protected_blocks()) << "step " << step;
    if (const Status status = p.policy.check_integrity(); !status) {
      FAIL() << "step " << step << ": " << status.message();
    }
  }
}

}  // namespace
}  // namespace anyslot
