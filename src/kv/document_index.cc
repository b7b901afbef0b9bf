#include "kv/document_index.h"

#include "kv/kv_cache.h"

namespace anyslot {

void DocumentIndex::add(const CacheEntry& entry) {
  const auto owned = by_owner_.try_emplace(entry.document.owner).first;
  try {
    size_ += owned->second.insert(&entry).second ? 1 : 0;
  } catch (...) {
    if (owned->second.empty()) by_owner_.erase(owned);
    throw;
  }
}

void DocumentIndex::remove(const CacheEntry& entry) {
  const auto owned = by_owner_.find(entry.document.owner);
  if (owned == by_owner_.end() || owned->second.erase(&entry) == 0) return;
  --size_;
  if (owned->second.empty()) by_owner_.erase(owned);
}

bool DocumentIndex::contains(const CacheEntry& entry) const {
  return of(entry.document.owner).contains(&entry);
}

const DocumentIndex::Entries& DocumentIndex::of(const Digest& owner) const {
  static const Entries kNone;
  const auto owned = by_owner_.find(owner);
  return owned == by_owner_.end() ? kNone : owned->second;
}

}  // namespace anyslot
