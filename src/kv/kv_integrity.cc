#include <string>

#include "kv/kv_cache.h"

namespace anyslot {

namespace {

Status wrong_count(const std::string& what, int64_t counted, int64_t found) {
  return internal_error("KV cache: " + what + ": " + std::to_string(counted) + " counted, " +
                        std::to_string(found) + " found");
}

Status wrong_block(BlockId block, const std::string& what) {
  return internal_error("KV cache: block " + std::to_string(block) + " " + what);
}

Status wrong_entry(const CacheEntry& entry, const std::string& what) {
  return internal_error("KV cache: entry " + entry.digest.hex().substr(0, 16) + " " + what);
}

}  // namespace

Status KvCache::check_integrity(std::span<const BlockId> private_blocks) const {
  for (const auto& [digest, entry] : entries_) {
    if (entry->digest != digest) return wrong_entry(*entry, "stands under another digest");
    if (Status status = check_entry(*entry); !status) return status;
  }
  if (Status status = check_blocks(private_blocks); !status) return status;
  if (Status status = policy_.check_integrity(); !status) return status;
  return check_counters();
}

Status KvCache::check_uses(const EntryUses& uses,
                           const std::unordered_set<const CacheEntry*>& encoding) const {
  size_t num_used = 0;
  size_t num_encoding = 0;
  for (const auto& [digest, entry] : entries_) {
    const auto used = uses.find(entry.get());
    const int64_t found = used == uses.end() ? 0 : used->second;
    if (entry->refs + entry->waiters != found) {
      return wrong_entry(*entry, "is used " + std::to_string(found) + " times, but has " +
                                     std::to_string(entry->refs) + " refs and " +
                                     std::to_string(entry->waiters) + " waiters");
    }
    const bool has_job = encoding.contains(entry.get());
    if (has_job != (entry->state == EntryState::kEncoding)) {
      return wrong_entry(*entry, has_job ? "is ready, but a job encodes it"
                                         : "waits to be encoded, but has no job");
    }
    num_used += found > 0 ? 1 : 0;
    num_encoding += has_job ? 1 : 0;
  }
  if (num_used != uses.size() || num_encoding != encoding.size()) {
    return internal_error("KV cache: an entry that is gone is used or encoded");
  }
  return {};
}

Status KvCache::check_entry(const CacheEntry& entry) const {
  if (entry.num_tokens <= 0 ||
      static_cast<int64_t>(entry.blocks.size()) != blocks_for(entry.num_tokens)) {
    return wrong_entry(entry, "holds " + std::to_string(entry.num_tokens) + " tokens in " +
                                  std::to_string(entry.blocks.size()) + " blocks");
  }
  if (entry.kind == EntryKind::kTextBlock && entry.num_tokens != kBlockSize) {
    return wrong_entry(entry, "is a text block that is not full");
  }
  if (entry.refs < 0 || entry.waiters < 0 || entry.pins < 0) {
    return wrong_entry(entry, "has a negative count");
  }
  const bool encoding = entry.state == EntryState::kEncoding;
  if (encoding && (entry.waiters == 0 || entry.refs > 0)) {
    return wrong_entry(entry, "is encoding without a waiter, or with refs");
  }
  const bool used = entry.refs > 0 || entry.waiters > 0;
  if (entry.removed && (!used || entry.is_pinned())) {
    return wrong_entry(entry, "was removed but is pinned, or kept though nobody uses it");
  }
  if (documents_.contains(entry) != (entry.kind == EntryKind::kDocument)) {
    return wrong_entry(entry, "is a document that is not listed, or listed but no document");
  }
  if (!encoding && entry.waiters > 0) return wrong_entry(entry, "is ready but has waiters");
  const bool evictable = !encoding && entry.refs == 0 && !entry.is_pinned();
  if (evictable != policy_.contains(entry.eviction)) {
    return wrong_entry(entry, evictable ? "is unused but cannot be evicted"
                                        : "is in use or pinned but can be evicted");
  }
  if (evictable && !policy_.describes(entry.eviction, &entry,
                                      static_cast<int64_t>(entry.blocks.size()), entry.expiry)) {
    return wrong_entry(entry, "differs from what the eviction policy knows of it");
  }
  return {};
}

/// Every block is free, private or in one entry, and the callers own exactly the private ones.
Status KvCache::check_blocks(std::span<const BlockId> private_blocks) const {
  std::vector<bool> seen(is_private_.size(), false);
  const auto claim = [&](BlockId block, const char* owner) -> Status {
    if (!pool_.contains(block)) return wrong_block(block, "does not exist but has an owner");
    if (seen[static_cast<size_t>(block)]) return wrong_block(block, "has two owners");
    if (pool_.is_free(block)) return wrong_block(block, std::string("is free but ") + owner);
    seen[static_cast<size_t>(block)] = true;
    return {};
  };
  for (const auto& [digest, entry] : entries_) {
    for (const BlockId block : entry->blocks) {
      if (Status status = claim(block, "cached"); !status) return status;
      if (is_private_[static_cast<size_t>(block)])
        return wrong_block(block, "is cached but private");
    }
  }
  for (const BlockId block : private_blocks) {
    if (Status status = claim(block, "owned by a caller"); !status) return status;
    if (!is_private_[static_cast<size_t>(block)]) {
      return wrong_block(block, "is owned by a caller but not private");
    }
  }
  int64_t num_free = 0;
  for (BlockId block = 0; block < pool_.num_blocks(); ++block) {
    if (pool_.is_free(block)) {
      ++num_free;
      if (is_private_[static_cast<size_t>(block)]) return wrong_block(block, "is free but private");
    } else if (!seen[static_cast<size_t>(block)]) {
      return wrong_block(block, is_private_[static_cast<size_t>(block)]
                                    ? "is private but no caller owns it"
                                    : "is lost: neither free, nor private, nor cached");
    }
  }
  if (num_free != pool_.num_free()) return wrong_count("free blocks", pool_.num_free(), num_free);
  const int64_t num_private = static_cast<int64_t>(private_blocks.size());
  if (num_private != private_blocks_) {
    return wrong_count("private blocks", private_blocks_, num_private);
  }
  return {};
}

Status KvCache::check_counters() const {
  int64_t documents = 0, referenced = 0, evictable = 0, pinned = 0;
  std::unordered_map<Digest, int64_t, DigestHash> by_tenant;
  for (const auto& [digest, entry] : entries_) {
    const int64_t num_blocks = static_cast<int64_t>(entry->blocks.size());
    if (entry->kind == EntryKind::kDocument) ++documents;
    if (entry->refs > 0 || entry->waiters > 0) ++referenced;
    if (entry->is_pinned()) pinned += num_blocks;
    if (entry->is_pinned() && entry->document.tenant)
      by_tenant[*entry->document.tenant] += num_blocks;
    evictable += evictable_blocks(*entry);
  }
  if (documents != documents_.size()) {
    return wrong_count("document entries", documents_.size(), documents);
  }
  if (referenced != referenced_entries_) {
    return wrong_count("referenced entries", referenced_entries_, referenced);
  }
  if (pinned != pinned_blocks_) return wrong_count("pinned blocks", pinned_blocks_, pinned);
  if (by_tenant != pinned_by_tenant_) {
    return internal_error("KV cache: the pinned blocks of tenants are not those counted");
  }
  if (evictable != policy_.evictable_blocks()) {
    return wrong_count("evictable blocks", policy_.evictable_blocks(), evictable);
  }
  if (pinned_blocks_ > pool_.num_blocks() / 2) {
    return internal_error("KV cache: " + std::to_string(pinned_blocks_) + " blocks of " +
                          std::to_string(pool_.num_blocks()) + " are pinned, more than half");
  }
  return {};
}

}  // namespace anyslot
