#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "anyslot/engine.h"
#include "kv/kv_cache.h"
#include "sched/scheduler.h"

namespace anyslot::internal {

/// The documents of the cache as users handle them: registered ahead, listed, pinned, removed; each
/// user sees those of one salt. Engine thread only.
class DocumentDesk {
 public:
  using Done = std::function<void(Expected<CachedDocument>)>;

  DocumentDesk(KvCache& cache, Scheduler& scheduler, int64_t block_bytes)
      : cache_(cache), scheduler_(scheduler), block_bytes_(block_bytes) {}

  /// Has the scheduler encode a document.
  void submit(std::unique_ptr<Sequence> document, Done done);
  /// A document's sequence has ended.
  void end(const EndedSequence& ended);
  /// Nobody waits for a document any more; nothing when it has ended.
  void cancel(uint64_t id);
  /// Ends all documents that are being encoded.
  void end_all(const Status& reason);
  /// The same, without memory for the reason.
  void break_off() noexcept;
  /// Calls those whose documents have ended. What they throw concerns nobody: it is dropped.
  void deliver() noexcept;

  /// See Engine.
  std::vector<CachedDocument> list(const std::string& salt) const;
  Status pin(const std::string& key, const std::string& salt);
  Status unpin(const std::string& key, const std::string& salt);
  Status remove(const std::string& key, const std::string& salt);

 private:
  using Waiting = std::map<uint64_t, Done>;  // by id of the document's sequence

  /// Takes no memory.
  void end(Waiting::iterator waiting, Expected<CachedDocument> result) noexcept;
  CacheEntry* find(const std::string& key, const std::string& salt);
  CachedDocument cached_document(const DocumentInfo& info) const;

  KvCache& cache_;
  Scheduler& scheduler_;
  int64_t block_bytes_;
  Waiting waiting_;
  std::vector<std::pair<Done, Expected<CachedDocument>>> ended_;  // with room for all who wait
};

}  // namespace anyslot::internal
