#pragma once

#include <cstdint>
#include <unordered_map>
#include <unordered_set>

#include "base/hash.h"

namespace anyslot {

struct CacheEntry;

/// The documents of a cache by owner: what one owner sees costs what it has itself, however many
/// others there are.
class DocumentIndex {
 public:
  using Entries = std::unordered_set<const CacheEntry*>;

  /// Its owner must not change from now on. When memory does not suffice, nothing has changed.
  void add(const CacheEntry& entry);
  void remove(const CacheEntry& entry);
  bool contains(const CacheEntry& entry) const;
  /// Those of one owner, in any order.
  const Entries& of(const Digest& owner) const;
  int64_t size() const { return size_; }

 private:
  std::unordered_map<Digest, Entries, DigestHash> by_owner_;  // none is empty
  int64_t size_ = 0;
};

}  // namespace anyslot
