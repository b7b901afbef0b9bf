#include "text/token_memo.h"

#include <utility>

namespace anyslot {

namespace {

// Digest, list node, hash node, bucket, shared_ptr and vector of one entry, roughly.
constexpr size_t kEntryOverhead = 256;

size_t cost_of(const std::vector<int32_t>& ids) {
  return kEntryOverhead + ids.capacity() * sizeof(int32_t);
}

Digest key_of(const Tokenizer& tokenizer, const std::string& salt, const std::string& text,
              std::span<const ByteRange> markup) {
  DigestBuilder digest;
  digest.add("anyslot token memo").add(tokenizer.fingerprint()).add(salt).add(text);
  for (const ByteRange& range : markup) {
    digest.add(static_cast<int64_t>(range.begin)).add(static_cast<int64_t>(range.end));
  }
  return digest.finish();
}

}  // namespace

Expected<TokenMemo::Ids> TokenMemo::encode(const Tokenizer& tokenizer, const std::string& salt,
                                           const std::string& text,
                                           std::span<const ByteRange> markup) {
  const Digest key = key_of(tokenizer, salt, text, markup);
  if (Ids known = find(key)) return known;
  // Encoded outside the lock: two threads may do the same work, but none waits for another's.
  Expected<std::vector<int32_t>> ids = tokenizer.encode(text, markup);
  if (!ids) return ids.status();
  ids->shrink_to_fit();
  auto fresh = std::make_shared<const std::vector<int32_t>>(*std::move(ids));
  insert(key, fresh);
  return Ids(std::move(fresh));
}

TokenMemo::Ids TokenMemo::find(const Digest& key) {
  const std::lock_guard lock(mutex_);
  const auto found = index_.find(key);
  if (found == index_.end()) {
    ++stats_.misses;
    return nullptr;
  }
  ++stats_.hits;
  entries_.splice(entries_.begin(), entries_, found->second);
  return found->second->ids;
}

void TokenMemo::insert(const Digest& key, const Ids& ids) {
  const size_t cost = cost_of(*ids);
  const std::lock_guard lock(mutex_);
  if (cost > max_bytes_ || index_.contains(key)) return;
  while (stats_.bytes + cost > max_bytes_) {
    stats_.bytes -= cost_of(*entries_.back().ids);
    index_.erase(entries_.back().key);
    entries_.pop_back();
  }
  entries_.push_front({key, ids});
  index_.emplace(key, entries_.begin());
  stats_.bytes += cost;
}

TokenMemo::Stats TokenMemo::stats() const {
  const std::lock_guard lock(mutex_);
  Stats stats = stats_;
  stats.entries = static_cast<int64_t>(entries_.size());
  return stats;
}

}  // namespace anyslot
