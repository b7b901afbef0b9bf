#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/status.h"
#include "base/hash.h"
#include "text/tokenizer.h"

namespace anyslot {

/// Remembers the token ids of texts seen before, by SHA-256 of tokenizer, salt, text and markup:
/// the salt keeps one tenant from measuring what another one sent. Bounded; what was not used for
/// longest goes first. Thread-safe.
class TokenMemo {
 public:
  using Ids = std::shared_ptr<const std::vector<int32_t>>;

  struct Stats {
    int64_t hits = 0;
    int64_t misses = 0;
    int64_t entries = 0;
    size_t bytes = 0;  // as counted against the limit
  };

  /// 0 bytes: remember nothing. What is larger than the limit by itself is not remembered.
  explicit TokenMemo(size_t max_bytes) : max_bytes_(max_bytes) {}

  /// Tokenizer::encode, saved when possible. Errors are not remembered.
  Expected<Ids> encode(const Tokenizer& tokenizer, const std::string& salt, const std::string& text,
                       std::span<const ByteRange> markup);

  Stats stats() const;

 private:
  struct Entry {
    Digest key;
    Ids ids;
  };
  using Entries = std::list<Entry>;

  Ids find(const Digest& key);
  void insert(const Digest& key, const Ids& ids);

  const size_t max_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  Entries entries_;           // the most recently used first
  std::unordered_map<Digest, Entries::iterator, DigestHash> index_;
  Stats stats_;
};

}  // namespace anyslot
