#include "kv/kv_cache.h"

#include <algorithm>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace anyslot {

namespace {

void require(bool holds, const char* what) {
  if (!holds) throw std::logic_error(what);
}

int64_t num_blocks_of(const CacheEntry& entry) { return static_cast<int64_t>(entry.blocks.size()); }

// With the memory for its blocks, so that they can be put in when it is entered and nothing can
// fail any more.
std::unique_ptr<CacheEntry> new_entry(const Digest& digest, EntryKind kind, int64_t num_tokens) {
  auto entry = std::make_unique<CacheEntry>();
  entry->digest = digest;
  entry->kind = kind;
  entry->num_tokens = num_tokens;
  entry->blocks.reserve(static_cast<size_t>(blocks_for(num_tokens)));
  return entry;
}

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

CacheEntry* KvCache::insert_encoding(const Digest& digest, int64_t num_tokens, const Digest& owner,
                                     const Tenant& tenant) {
  require(num_tokens > 0, "insert_encoding: a document without tokens");
  require(find(digest) == nullptr, "insert_encoding: the digest is known already");
  const int64_t count = blocks_for(num_tokens);
  if (!make_room(count)) return nullptr;
  auto owned = new_entry(digest, EntryKind::kDocument, num_tokens);
  owned->waiters = 1;
  owned->document.owner = owner;
  owned->document.tenant = tenant;
  owned->document.born = policy_.tick();
  owned->document.latest_use = ++num_uses_;
  CacheEntry& entry = add_entry(std::move(owned));
  pool_.allocate(count, entry.blocks);
  return &entry;
}

void KvCache::acquire(CacheEntry& entry, bool counts) {
  if (!is_used(entry)) {
    ++referenced_entries_;
    keep(entry);
  }
  if (counts) policy_.count_use(entry.eviction);
  if (entry.kind == EntryKind::kDocument) {
    if (counts && entry.state == EntryState::kReady) ++entry.document.hits;
    entry.document.latest_use = ++num_uses_;
  }
  ++(entry.state == EntryState::kReady ? entry.refs : entry.waiters);
}

bool KvCache::release(CacheEntry& entry) {
  require(is_used(entry), "release: the entry is not in use");
  --(entry.state == EntryState::kReady ? entry.refs : entry.waiters);
  if (is_used(entry)) return false;
  --referenced_entries_;
  if (entry.state == EntryState::kEncoding || entry.removed) {
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

int64_t KvCache::pinned_blocks(const Tenant& tenant) const {
  if (!tenant) return pinned_blocks_;
  const auto found = pinned_by_tenant_.find(*tenant);
  return found == pinned_by_tenant_.end() ? 0 : found->second;
}

Status KvCache::check_pins(int64_t more_blocks, const Tenant& tenant, int64_t others) const {
  const int64_t limit = pool_.num_blocks() / 2;
  const int64_t share = tenant ? limit / 2 : limit;
  const int64_t own = pinned_blocks(tenant);
  if (more_blocks == 0) return {};
  const std::string wish = "pinning takes " + std::to_string(more_blocks) + " blocks, and " +
                           std::to_string(own) + " are pinned";
  if (own + more_blocks > share) {
    return resource_exhausted(
        wish + "; at most " + std::to_string(share) + " of " + std::to_string(pool_.num_blocks()) +
        " (" + (tenant ? "a quarter" : "half") +
        " of the KV cache) can be pinned: unpin other documents or enlarge the KV cache");
  }
  if (pinned_blocks_ + more_blocks + others > limit) {
    return resource_exhausted(wish +
                              ", but others have pinned too much for that now: try later, unpin "
                              "other documents or enlarge the KV cache");
  }
  return {};
}

void KvCache::count_pinned(const CacheEntry& entry, int64_t blocks) {
  if (entry.document.tenant) {
    const auto counted = pinned_by_tenant_.try_emplace(*entry.document.tenant, 0).first;
    if ((counted->second += blocks) == 0) pinned_by_tenant_.erase(counted);
  }
  pinned_blocks_ += blocks;
}

Status KvCache::pin(CacheEntry& entry) {
  require(!entry.removed, "pin: the entry was removed");
  if (!entry.is_pinned()) {
    if (Status status = check_pins(num_blocks_of(entry), entry.document.tenant); !status.ok()) {
      return status;
    }
    count_pinned(entry, num_blocks_of(entry));
    keep(entry);
  }
  ++entry.pins;
  return {};
}

void KvCache::unpin(CacheEntry& entry) {
  require(entry.pins > 0, "unpin: the entry is not pinned");
  --entry.pins;
  if (entry.is_pinned()) return;
  count_pinned(entry, -num_blocks_of(entry));
  make_evictable_if_unused(entry);
}

bool KvCache::hold(CacheEntry& entry, int64_t ticks) {
  require(!entry.removed, "hold: the entry was removed");
  require(ticks > 0, "hold: there is no time");
  if (!entry.is_pinned()) {
    if (!check_pins(num_blocks_of(entry), entry.document.tenant).ok()) return false;
    count_pinned(entry, num_blocks_of(entry));
    keep(entry);
  }
  entry.hold_end = std::max(entry.hold_end, policy_.tick() + ticks);
  const bool is_next = next_hold_end_ == 0 || entry.hold_end < next_hold_end_;
  if (is_next) next_hold_end_ = entry.hold_end;
  return true;
}

void KvCache::end_hold(CacheEntry& entry) {
  if (std::exchange(entry.hold_end, 0) == 0 || entry.is_pinned()) return;
  count_pinned(entry, -num_blocks_of(entry));
  make_evictable_if_unused(entry);
}

// Looks at all entries, as no order of theirs is kept: at most once per end of a hold.
void KvCache::end_holds() {
  if (next_hold_end_ == 0 || policy_.tick() <= next_hold_end_) return;
  next_hold_end_ = 0;
  for (const auto& [digest, entry] : entries_) {
    if (entry->hold_end == 0) continue;
    if (entry->hold_end < policy_.tick()) {
      end_hold(*entry);
    } else if (next_hold_end_ == 0 || entry->hold_end < next_hold_end_) {
      next_hold_end_ = entry->hold_end;
    }
  }
}

void KvCache::set_tick(int64_t tick) {
  policy_.set_tick(tick);
  end_holds();
  while (policy_.has_expired()) {
    remove_entry(*policy_.evict());
    ++expirations_total_;
  }
}

int64_t KvCache::next_expiry() const {
  const int64_t next = policy_.next_expiry();
  if (next == 0 || next_hold_end_ == 0) return std::max(next, next_hold_end_);
  return std::min(next, next_hold_end_);
}

void KvCache::set_time_to_live(CacheEntry& entry, int64_t ticks) {
  if (ticks > 0) EvictionPolicy::reserve_expiry(entry.eviction);
  entry.time_to_live = ticks;
  if (!policy_.contains(entry.eviction)) return;
  entry.expiry = expiry_from_now(entry);
  policy_.set_expiry(entry.eviction, entry.expiry);
}

int64_t KvCache::expiry_from_now(const CacheEntry& entry) const {
  return entry.time_to_live == 0 ? 0 : policy_.tick() + entry.time_to_live;
}

void KvCache::list_document(CacheEntry& entry, std::string_view id) {
  entry.document.listed = true;
  if (!id.empty()) entry.document.id = id;
}

DocumentInfo KvCache::describe(const CacheEntry& entry) const {
  DocumentInfo info;
  info.digest = entry.digest;
  info.id = entry.document.id;
  info.num_tokens = entry.num_tokens;
  info.num_blocks = num_blocks_of(entry);
  info.hits = entry.document.hits;
  info.age = policy_.tick() - entry.document.born;
  info.encoding = entry.state == EntryState::kEncoding;
  info.pinned = entry.is_pinned();
  info.latest_use = entry.document.latest_use;
  if (entry.time_to_live > 0) {
    const bool runs = policy_.contains(entry.eviction);
    info.time_left = runs ? entry.expiry - policy_.tick() : entry.time_to_live;
  }
  return info;
}

std::vector<DocumentInfo> KvCache::documents(const Digest& owner) const {
  std::vector<DocumentInfo> result;
  for (const CacheEntry* entry : documents_.of(owner)) {
    if (entry->document.listed && !entry->removed) result.push_back(describe(*entry));
  }
  std::ranges::sort(result, std::ranges::greater(), &DocumentInfo::latest_use);
  return result;
}

void KvCache::remove(CacheEntry& entry) {
  require(!entry.is_pinned() && !entry.removed, "remove: the entry is pinned or was removed");
  if (!is_used(entry)) {
    keep(entry);
    remove_entry(entry);
    return;
  }
  // It lives on under a key that nobody asks for.
  const Digest unknown = DigestBuilder().add("anyslot removed v1").add(++num_removed_).finish();
  auto node = entries_.extract(Digest(entry.digest));
  entry.digest = unknown;
  entry.removed = true;
  node.key() = entry.digest;
  entries_.insert(std::move(node));
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
  auto owned = new_entry(digest, EntryKind::kTextBlock, kBlockSize);
  owned->blocks.push_back(block);
  owned->state = EntryState::kReady;
  owned->refs = 1;
  CacheEntry& entry = add_entry(std::move(owned));
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
          .document_entries = documents_.size(),
          .text_entries = static_cast<int64_t>(entries_.size()) - documents_.size(),
          .referenced_entries = referenced_entries_,
          .evictions_total = evictions_total_,
          .expirations_total = expirations_total_};
}

bool KvCache::make_room(int64_t count) {
  if (count > available_blocks()) return false;
  while (pool_.num_free() < count) {
    remove_entry(*policy_.evict());
    ++evictions_total_;
  }
  return true;
}

/// Enters a new entry that is in use. When memory does not suffice, nothing has changed.
CacheEntry& KvCache::add_entry(std::unique_ptr<CacheEntry> owned) {
  CacheEntry& entry = *owned;
  const auto added = entries_.emplace(entry.digest, std::move(owned)).first;
  if (entry.kind == EntryKind::kDocument) {
    try {
      documents_.add(entry);
    } catch (...) {
      entries_.erase(added);
      throw;
    }
  }
  ++referenced_entries_;
  return entry;
}

void KvCache::remove_entry(CacheEntry& entry) {
  pool_.free(entry.blocks);
  if (entry.is_pinned()) count_pinned(entry, -num_blocks_of(entry));
  if (entry.kind == EntryKind::kDocument) documents_.remove(entry);
  entries_.erase(Digest(entry.digest));  // a copy: the key must outlive the entry
}

void KvCache::make_evictable_if_unused(CacheEntry& entry) {
  if (is_used(entry) || entry.is_pinned()) return;
  entry.expiry = expiry_from_now(entry);
  policy_.insert(entry.eviction, &entry, num_blocks_of(entry), entry.expiry);
}

void KvCache::keep(CacheEntry& entry) {
  if (policy_.contains(entry.eviction)) policy_.remove(entry.eviction);
}

}  // namespace anyslot
