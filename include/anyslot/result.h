#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/config.h"

namespace anyslot {

enum class FinishReason : uint8_t { kStop, kLength, kCancelled, kError };

std::string_view finish_reason_name(FinishReason reason);

/// Where the KV of a document came from.
enum class DocumentSource : uint8_t {
  kPool,      // it was cached
  kJoined,    // it was being encoded for another request
  kComputed,  // this request encoded it
};

std::string_view document_source_name(DocumentSource source);

struct DocumentUsage {
  int index = 0;  // among the request's documents, in prompt order
  std::string id;
  int64_t tokens = 0;
  int64_t cached_tokens = 0;
  DocumentSource source = DocumentSource::kComputed;
};

struct Usage {
  int64_t prompt_tokens = 0;
  int64_t completion_tokens = 0;
  int64_t cached_tokens = 0;  // prompt tokens whose KV was reused; joined documents do not count
  std::vector<DocumentUsage> documents;  // the preamble is not listed
  double ttft_ms = 0;  // from submission to the first token event, tokenizing and queueing included
  double total_ms = 0;  // from submission to the last event
};

/// One message of a stream. The last one has a finish_reason and the usage.
struct Event {
  std::vector<int32_t> token_ids;
  std::string text;  // whole UTF-8 characters only; stop tokens are not shown
  std::vector<float>
      prompt_logits;  // [num_text_tokens, vocab], once, when the request asked for them
  std::optional<FinishReason> finish_reason;
  std::string error;  // with FinishReason::kError
  Usage usage;        // complete in the last event
};

/// Counters of an engine. Those named total never fall.
struct Stats {
  int64_t running_requests = 0;
  int64_t waiting_requests = 0;
  int64_t total_blocks = 0;
  int64_t free_blocks = 0;
  int64_t cached_blocks = 0;       // evictable: cached and referenced by nobody
  int64_t document_entries = 0;    // documents in the cache
  int64_t referenced_entries = 0;  // cache entries in use by a request; 0 when idle
  int64_t steps_total = 0;
  int64_t kv_tokens_read_total =
      0;  // distinct KV tokens read by attention per layer, summed over steps
  int64_t blocks_copied_total = 0;  // private copies of document blocks made by method block
  int64_t evictions_total = 0;
  int64_t preemptions_total = 0;
  int64_t prompt_tokens_total = 0;
  int64_t cached_tokens_total = 0;
  int64_t generated_tokens_total = 0;
};

}  // namespace anyslot
