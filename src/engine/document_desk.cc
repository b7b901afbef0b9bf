#include "engine/document_desk.h"

#include <new>
#include <utility>

#include "kv/keys.h"
#include "sched/admission.h"

namespace anyslot::internal {

namespace {

double seconds(int64_t ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

Status unknown_document(const std::string& key) {
  return not_found("no document '" + key.substr(0, 2 * sizeof(Digest)) +
                   "' is cached; it may have been evicted: list those that are");
}

// Short enough to need no memory itself.
Status out_of_memory() { return resource_exhausted("out of memory"); }

void tell(const DocumentDesk::Done& done, Expected<CachedDocument> result) noexcept {
  try {
    done(std::move(result));
  } catch (...) {  // see Engine::register_document
  }
}

}  // namespace

void DocumentDesk::submit(std::unique_ptr<Sequence> document, Done done) {
  const uint64_t id = document->id;
  Done owed = std::move(done);
  Waiting::iterator waiting = waiting_.end();
  try {
    ended_.reserve(ended_.size() + waiting_.size() + 1);
    Status status = check_fits_beside_pins(*document, cache_);
    waiting = waiting_.try_emplace(id, std::move(owed)).first;
    if (!status.ok()) return end(waiting, std::move(status));
    scheduler_.submit(std::move(document));
  } catch (const std::bad_alloc&) {
    if (waiting == waiting_.end()) return tell(owed, out_of_memory());
    end(waiting, out_of_memory());
  }
}

void DocumentDesk::end(Waiting::iterator waiting, Expected<CachedDocument> result) noexcept {
  ended_.emplace_back(std::move(waiting->second), std::move(result));
  waiting_.erase(waiting);
}

void DocumentDesk::end(const EndedSequence& ended) {
  const auto waiting = waiting_.find(ended.sequence->id);
  if (waiting == waiting_.end()) return;
  if (ended.status.ok()) {
    end(waiting, cached_document(ended.document));
  } else {
    end(waiting, ended.status);
  }
}

void DocumentDesk::cancel(uint64_t id) {
  const auto waiting = waiting_.find(id);
  if (waiting == waiting_.end()) return;
  Status status(StatusCode::kCancelled, "the registration was given up");
  scheduler_.remove(id);
  end(waiting, std::move(status));
}

void DocumentDesk::end_all(const Status& reason) {
  while (!waiting_.empty()) {
    Status status = reason;
    scheduler_.remove(waiting_.begin()->first);
    end(waiting_.begin(), std::move(status));
  }
}

void DocumentDesk::break_off() noexcept {
  while (!waiting_.empty()) {
    scheduler_.remove(waiting_.begin()->first);
    end(waiting_.begin(), out_of_memory());
  }
}

void DocumentDesk::deliver() noexcept {
  for (auto& [done, result] : ended_) tell(done, std::move(result));
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
  cache_.end_hold(*entry);
  return {};
}

Status DocumentDesk::remove(const std::string& key, const std::string& salt) {
  CacheEntry* const entry = find(key, salt);
  if (entry == nullptr) return unknown_document(key);
  if (entry->pins > 0) {
    return failed_precondition("document '" + key +
                               "' is pinned; unpin it before it can be removed");
  }
  cache_.end_hold(*entry);
  cache_.remove(*entry);
  return {};
}

}  // namespace anyslot::internal
