#pragma once

#include <array>
#include <cstdint>
#include <set>
#include <tuple>

#include "anyslot/status.h"

namespace anyslot {

struct CacheEntry;
class EvictionHandle;

/// Expiry, order among those of equal expiry, and whose they are.
using ExpirySet = std::set<std::tuple<int64_t, int64_t, EvictionHandle*>>;

/// What the eviction policy remembers of one entry: its uses, and, while it is evictable, its
/// place. Part of the entry, so that the policy allocates nothing for it. Neither copied nor moved.
class EvictionHandle {
 public:
  EvictionHandle() = default;
  EvictionHandle(const EvictionHandle&) = delete;
  EvictionHandle& operator=(const EvictionHandle&) = delete;

 private:
  friend class EvictionPolicy;
  friend struct KvCacheTestAccess;

  EvictionHandle* previous_ = nullptr;  // towards the most recent; both null while not evictable
  EvictionHandle* next_ = nullptr;
  CacheEntry* entry_ = nullptr;
  int64_t num_blocks_ = 0;
  int64_t expiry_ = 0;
  int64_t order_ = 0;                 // among those of equal expiry
  int64_t age_ = 0;                   // of the policy, when uses_ and level_ were right
  ExpirySet::node_type expiry_node_;  // kept while it is not evictable, so that becoming it needs
                                      // no memory
  int uses_ = 1;                      // its insertion
  int level_ = 0;
};

/// Which of the evictable entries goes next: a segmented LRU that resists scans.
///
/// Entries used once, at insertion, stand in the probation queue; entries used again stand in the
/// protected one, which is kept in levels of 2-3, 4-7, 8-15, ... uses, most recent first in each.
/// Those that expired go first, then the probation tail, then the tail of the lowest protected
/// level. The protected queue holds at most kProtectedPercent of the pool's blocks; what is over
/// (the tail of its lowest level) moves to the head of probation. So documents used n times in a
/// row can only drive out those used less than 2n times. Uses age: they are halved, and each level
/// joins the one below it in front, whenever kAgingTurnovers pools of blocks have been evicted.
///
/// An entry that is used whenever another one is, and becomes evictable after it, is never evicted
/// before it unless it expires: a chain of text blocks released from its end goes leaf first.
///
/// O(1) per operation; O(log n) for entries that have an expiry. Takes memory for the first expiry
/// of a handle only.
class EvictionPolicy {
 public:
  static constexpr int kProtectedPercent = 80;
  static constexpr int kLevels = 8;  // level l: 2^l to 2^(l+1) - 1 uses; level 0 is probation
  static constexpr int kMaxUses = (1 << kLevels) - 1;
  static constexpr int kAgingTurnovers = 8;

  /// `pool_blocks`: size of the pool.
  explicit EvictionPolicy(int64_t pool_blocks);
  EvictionPolicy(const EvictionPolicy&) = delete;
  EvictionPolicy& operator=(const EvictionPolicy&) = delete;

  /// One use beyond the insertion; at any time. An evictable entry keeps its place until it is
  /// inserted anew.
  void count_use(EvictionHandle& handle);

  /// `entry` became evictable: it holds `num_blocks` blocks and expires after tick `expiry` (0:
  /// never). Throws std::logic_error when it is evictable already.
  void insert(EvictionHandle& handle, CacheEntry* entry, int64_t num_blocks, int64_t expiry);
  /// It is no longer evictable. Throws std::logic_error when it was not.
  void remove(EvictionHandle& handle);
  bool contains(const EvictionHandle& handle) const { return handle.next_ != nullptr; }
  /// Takes the memory that an expiry of this handle needs.
  static void reserve_expiry(EvictionHandle& handle);
  /// Changes the expiry of an evictable entry; its place stays.
  void set_expiry(EvictionHandle& handle, int64_t expiry);

  /// Whether an evictable entry's handle says what its owner would insert now.
  bool describes(const EvictionHandle& handle, const CacheEntry* entry, int64_t num_blocks,
                 int64_t expiry) const {
    return handle.entry_ == entry && handle.num_blocks_ == num_blocks && handle.expiry_ == expiry;
  }

  /// Takes out the entry to evict next; nullptr when none is evictable.
  CacheEntry* evict();
  /// Whether that entry has expired.
  bool has_expired() const;

  /// The lowest expiry of an evictable entry; 0 when none has one.
  int64_t next_expiry() const { return by_expiry_.empty() ? 0 : std::get<0>(*by_expiry_.begin()); }

  /// Entries whose expiry is below the tick have expired. The unit is the caller's.
  void set_tick(int64_t tick) { tick_ = tick; }
  int64_t tick() const { return tick_; }

  int64_t evictable_blocks() const { return probation_blocks() + protected_blocks_; }
  int64_t probation_blocks() const { return levels_[0].num_blocks; }
  int64_t protected_blocks() const { return protected_blocks_; }

  /// Walks every queue and proves links, counts and the limit of the protected one.
  Status check_integrity() const;

 private:
  friend struct KvCacheTestAccess;

  struct Queue {
    EvictionHandle
        end;  // closes the ring: end.next_ is the head (most recent), end.previous_ the tail
    int64_t num_blocks = 0;
  };
  void settle(EvictionHandle& handle) const;
  void push_front(EvictionHandle& handle, int level);
  void unlink(EvictionHandle& handle);
  void index_expiry(EvictionHandle& handle, int64_t expiry);
  void unindex_expiry(EvictionHandle& handle);
  void shrink_protected();
  EvictionHandle* next_victim();
  void grow_old();

  std::array<Queue, kLevels> levels_;
  ExpirySet by_expiry_;  // of evictable entries that have one
  int64_t pool_blocks_;
  int64_t protected_blocks_ = 0;
  int64_t blocks_evicted_ = 0;  // since uses were last halved
  int64_t age_ = 0;             // how often uses were halved
  int64_t next_order_ = 0;
  int64_t tick_ = 0;
};

}  // namespace anyslot
