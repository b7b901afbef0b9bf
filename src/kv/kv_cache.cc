#include "kv/kv_cache.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

namespace anyslot {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

int64_t num_blocks_of(const CacheEntry& entry) { return static_cast<int64_t>(entry.blocks.size()); }

bool is_used(const CacheEntry& entry) { return entry.refs > 0 || entry.waiters > 0; }

}  // namespace

KvCache::KvCache(int64_t num_blocks)
    : pool_(num_blocks), policy_(num_blocks), is_private_(static_cast<size_t>(num_blocks), false) {}

KvCache::~KvCache() = default;

CacheEntry* KvCache::find(const Digest& digest) {
  const auto found = entries_.find(digest);
  return found == entries_.end() ? nullptr : found->second.get();
}

int64_t KvCache::available_blocks() const { return pool_.num_free() + policy_.evictable_blocks(); }

int64_t KvCache::evictable_blocks(const CacheEntry& entry) const {
  return policy_.contains(entry.eviction) ? num_blocks_of(entry) : 0;
}

CacheEntry* KvCache::insert_encoding(const Digest& digest, int64_t num_tokens) {
  require(num_tokens > 0, "insert_encoding: a document without tokens");
  require(find(digest) == nullptr, "insert_encoding: the digest is known already");
  const int64_t count = blocks_for(num_tokens);
  if (!make_room(count)) return nullptr;
  CacheEntry& entry = add_entry(digest, EntryKind::kDocument, num_tokens);
  entry.blocks = pool_.allocate(count);
  entry.waiters = 1;
  return &entry;
}

void KvCache::acquire(CacheEntry& entry, bool counts) {
  if (!is_used(entry)) {
    ++referenced_entries_;
    keep(entry);
  }
  if (counts) policy_.count_use(entry.eviction);
  ++(entry.state == EntryState::kReady ? entry.refs : entry.waiters);
}

bool KvCache::release(CacheEntry& entry) {
  require(is_used(entry), "release: the entry is not in use");
  --(entry.state == EntryState::kReady ? entry.refs : entry.waiters);
  if (is_used(entry)) return false;
  --referenced_entries_;
  if (entry.state == EntryState::kEncoding) {
    remove_entry(entry);
    return true;
  }
  make_evictable_if_unused(entry);
  return false;
}

void KvCache::mark_ready(CacheEntry& entry) {
  require(entry.state == EntryState::kEncoding, "mark_ready: the entry is ready already");
  entry.state = EntryState::kReady;
  entry.refs = std::exchange(entry.waiters, 0);
}

Status KvCache::pin(CacheEntry& entry) {
  if (entry.state != EntryState::kReady) {
    return failed_precondition(
        "a document that is being encoded cannot be pinned: pin it when it is ready");
  }
  if (entry.pins == 0) {
    const int64_t wanted = num_blocks_of(entry);
    const int64_t limit = pool_.num_blocks() / 2;
    if (pinned_blocks_ + wanted > limit) {
      return resource_exhausted(
          "pinning this document takes " + std::to_string(wanted) + " blocks, and " +
          std::to_string(pinned_blocks_) + " are pinned; at most " + std::to_string(limit) +
          " of " + std::to_string(pool_.num_blocks()) +
          " (half of the KV cache) can be: unpin others or enlarge the KV cache");
    }
    keep(entry);
    pinned_blocks_ += wanted;
  }
  ++entry.pins;
  return {};
}

void KvCache::unpin(CacheEntry& entry) {
  require(entry.pins > 0, "unpin: the entry is not pinned");
  if (--entry.pins > 0) return;
  pinned_blocks_ -= num_blocks_of(entry);
  make_evictable_if_unused(entry);
}

void KvCache::set_tick(int64_t tick) { policy_.set_tick(tick); }

void KvCache::set_expiry(CacheEntry& entry, int64_t expiry) {
  entry.expiry = expiry;
  if (policy_.contains(entry.eviction)) policy_.set_expiry(entry.eviction, expiry);
}

std::optional<std::vector<BlockId>> KvCache::allocate_private(int64_t count) {
  require(count >= 0, "allocate_private: a negative count");
  if (!make_room(count)) return std::nullopt;
  std::vector<BlockId> blocks = pool_.allocate(count);
  for (const BlockId block : blocks) is_private_[static_cast<size_t>(block)] = true;
  private_blocks_ += count;
  return blocks;
}

std::optional<BlockId> KvCache::allocate_private_block() {
  if (!make_room(1)) return std::nullopt;
  const BlockId block = pool_.allocate_one();
  is_private_[static_cast<size_t>(block)] = true;
  ++private_blocks_;
  return block;
}

void KvCache::free_private(std::span<const BlockId> blocks) {
  for (const BlockId block : blocks) {
    require(pool_.contains(block) && is_private_[static_cast<size_t>(block)],
            "free_private: a block that is not private");
  }
  pool_.free(blocks);
  for (const BlockId block : blocks) is_private_[static_cast<size_t>(block)] = false;
  private_blocks_ -= static_cast<int64_t>(blocks.size());
}

CacheEntry* KvCache::adopt_text_block(const Digest& digest, BlockId block) {
  require(pool_.contains(block) && is_private_[static_cast<size_t>(block)],
          "adopt_text_block: a block that is not private");
  if (find(digest) != nullptr) return nullptr;
  CacheEntry& entry = add_entry(digest, EntryKind::kTextBlock, kBlockSize);
  entry.blocks = {block};
  entry.state = EntryState::kReady;
  entry.refs = 1;
  is_private_[static_cast<size_t>(block)] = false;
  --private_blocks_;
  return &entry;
}

std::vector<CacheEntry*> KvCache::find_text_run(std::span<const Digest> keys) {
  std::vector<CacheEntry*> run;
  for (const Digest& key : keys) {
    CacheEntry* entry = find(key);
    if (entry == nullptr || entry->state != EntryState::kReady) break;
    run.push_back(entry);
  }
  return run;
}

KvCacheStats KvCache::stats() const {
  return {.total_blocks = pool_.num_blocks(),
          .free_blocks = pool_.num_free(),
          .evictable_blocks = policy_.evictable_blocks(),
          .private_blocks = private_blocks_,
          .pinned_blocks = pinned_blocks_,
          .document_entries = document_entries_,
          .text_entries = text_entries_,
          .referenced_entries = referenced_entries_,
          .evictions_total = evictions_total_};
}

bool KvCache::make_room(int64_t count) {
  if (count > available_blocks()) return false;
  while (pool_.num_free() < count) {
    remove_entry(*policy_.evict());
    ++evictions_total_;
  }
  return true;
}

/// A new entry that is in use but holds no blocks yet.
CacheEntry& KvCache::add_entry(const Digest& digest, EntryKind kind, int64_t num_tokens) {
  auto owned = std::make_unique<CacheEntry>();
  CacheEntry& entry = *owned;
  entry.digest = digest;
  entry.kind = kind;
  entry.num_tokens = num_tokens;
  entries_.emplace(digest, std::move(owned));
  ++num_entries(kind);
  ++referenced_entries_;
  return entry;
}

void KvCache::remove_entry(CacheEntry& entry) {
  pool_.free(entry.blocks);
  --num_entries(entry.kind);
  entries_.erase(Digest(entry.digest));  // a copy: the key must outlive the entry
}

void KvCache::make_evictable_if_unused(CacheEntry& entry) {
  if (is_used(entry) || entry.pins > 0) return;
  policy_.insert(entry.eviction, &entry, num_blocks_of(entry), entry.expiry);
}

void KvCache::keep(CacheEntry& entry) {
  if (policy_.contains(entry.eviction)) policy_.remove(entry.eviction);
}

int64_t& KvCache::num_entries(EntryKind kind) {
  return kind == EntryKind::kDocument ? document_entries_ : text_entries_;
}

}  // namespace anyslot
