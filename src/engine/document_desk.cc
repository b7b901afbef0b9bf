#include "engine/document_desk.h"

#include "kv/keys.h"
#include "sched/admission.h"

namespace anyslot::internal {

namespace {

double seconds(int64_t ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

Status unknown_document(const std::string& key) {
  return not_found("no document '" + key.substr(0, 2 * sizeof(Digest)) +
                   "' is cached; it may have been evicted: list those that are");
}

}  // namespace

void DocumentDesk::submit(std::unique_ptr<Sequence> document, Done done) {
  if (Status status = check_fits_beside_pins(*document, cache_); !status.ok()) {
    ended_.emplace_back(std::move(done), std::move(status));
    return;
  }
  waiting_.emplace(document->id, std::move(done));
  scheduler_.submit(std::move(document));
}

void DocumentDesk::end(const EndedSequence& ended) {
  auto waiting = waiting_.extract(ended.sequence->id);
  if (waiting.empty()) return;
  if (ended.status.ok()) {
    ended_.emplace_back(std::move(waiting.mapped()), cached_document(ended.document));
  } else {
    ended_.emplace_back(std::move(waiting.mapped()), ended.status);
  }
}

void DocumentDesk::cancel(uint64_t id) {
  auto waiting = waiting_.extract(id);
  if (waiting.empty()) return;
  scheduler_.remove(id);
  ended_.emplace_back(std::move(waiting.mapped()),
                      Status(StatusCode::kCancelled, "the registration was given up"));
}

void DocumentDesk::end_all(const Status& reason) {
  for (auto& [id, done] : waiting_) {
    scheduler_.remove(id);
    ended_.emplace_back(std::move(done), reason);
  }
  waiting_.clear();
}

void DocumentDesk::deliver() {
  for (auto& [done, result] : ended_) done(std::move(result));
  ended_.clear();
}

CachedDocument DocumentDesk::cached_document(const DocumentInfo& info) const {
  CachedDocument document;
  document.key = info.digest.hex();
  document.id = info.id;
  document.tokens = info.num_tokens;
  document.bytes = info.num_blocks * block_bytes_;
  document.hits = info.hits;
  document.age_seconds = seconds(info.age);
  document.encoding = info.encoding;
  document.pinned = info.pinned;
  if (info.time_left) document.ttl_left_seconds = seconds(*info.time_left);
  return document;
}

std::vector<CachedDocument> DocumentDesk::list(const std::string& salt) const {
  std::vector<CachedDocument> documents;
  for (const DocumentInfo& info : cache_.documents(owner_of(salt))) {
    documents.push_back(cached_document(info));
  }
  return documents;
}

CacheEntry* DocumentDesk::find(const std::string& key, const std::string& salt) {
  const auto digest = Digest::from_hex(key);
  CacheEntry* const entry = digest ? cache_.find(*digest) : nullptr;
  const bool visible = entry != nullptr && entry->document.listed && !entry->removed &&
                       entry->document.owner == owner_of(salt);
  return visible ? entry : nullptr;
}

Status DocumentDesk::pin(const std::string& key, const std::string& salt) {
  CacheEntry* const entry = find(key, salt);
  if (entry == nullptr) return unknown_document(key);
  return entry->pins > 0 ? Status() : cache_.pin(*entry);
}

Status DocumentDesk::unpin(const std::string& key, const std::string& salt) {
  CacheEntry* const entry = find(key, salt);
  if (entry == nullptr) return unknown_document(key);
  if (entry->pins > 0) cache_.unpin(*entry);
  return {};
}

Status DocumentDesk::remove(const std::string& key, const std::string& salt) {
  CacheEntry* const entry = find(key, salt);
  if (entry == nullptr) return unknown_document(key);
  if (entry->pins > 0) {
    return failed_precondition("document '" + key +
                               "' is pinned; unpin it before it can be removed");
  }
  cache_.remove(*entry);
  return {};
}

}  // namespace anyslot::internal
