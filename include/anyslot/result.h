#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"

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
  int64_t prompt_tokens = 0;      // counted once, whatever the number of choices
  int64_t completion_tokens = 0;  // generated, in all choices; those of a stop string are included
  int64_t cached_tokens = 0;  // prompt tokens whose KV was reused; joined documents do not count
  std::vector<DocumentUsage> documents;  // the preamble is not listed
  double queue_ms = 0;                   // from submission to the first step
  double ttft_ms = 0;  // from submission to the first token event, tokenizing and queueing included
  double total_ms = 0;  // from submission to the last event
};

/// What ended an answer with FinishReason::kStop: the token of SamplingParams::stop_token_ids or
/// the string of SamplingParams::stop.
using StopReason = std::variant<int32_t, std::string>;

struct TokenLogprob {
  int32_t token_id = 0;
  float logprob = 0;
};

/// Natural logarithms of the softmax of the model's logits, before bias, penalties, temperature and
/// cuts.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob>
      top;  // the likeliest, in descending order; the chosen one may be absent
};

/// One message of a stream: about one choice of the request. Each choice has one event with a
/// finish_reason; the last of these is the stream's last event.
struct Event {
  int choice = 0;  // [0, n)
  std::vector<int32_t> token_ids;
  /// Whole UTF-8 characters only. Stop tokens and stop strings are not shown (see
  /// include_stop_in_output); what may be the beginning of a stop string comes later.
  std::string text;
  std::vector<TokenLogprobs>
      logprobs;  // one for each of token_ids, when the request asked for them
  std::vector<float>
      prompt_logits;  // [num_text_tokens, vocab], once, when the request asked for them
  std::optional<FinishReason> finish_reason;  // of the choice
  std::optional<StopReason> stop_reason;  // none when the model's own stop token ended the answer
  std::string error;                      // with FinishReason::kError; so is the next
  StatusCode error_code = StatusCode::kOk;
  double at_ms = 0;   // from submission until the engine had it, whenever it is read
  bool last = false;  // all choices have ended
  Usage usage;        // complete in the last event; the prompt's part also with the first token
};

/// Counters of an engine. Those named total never fall.
struct Stats {
  /// Here and in the next, each choice of a request counts as one, and so does each document that
  /// is being registered.
  int64_t running_requests = 0;
  int64_t waiting_requests = 0;
  int64_t total_blocks = 0;
  int64_t free_blocks = 0;
  int64_t cached_blocks = 0;       // evictable: cached and referenced by nobody
  int64_t pinned_blocks = 0;       // of pinned documents, whether or not they are in use
  int64_t document_entries = 0;    // documents in the cache, preambles included
  int64_t referenced_entries = 0;  // cache entries in use by a request; 0 when idle
  int64_t steps_total = 0;
  /// Distinct KV tokens read by attention per layer (the mean, where their windows differ), summed
  /// over steps.
  int64_t kv_tokens_read_total = 0;
  int64_t blocks_copied_total = 0;  // private copies of document blocks made by method block
  int64_t evictions_total = 0;      // cache entries that went for room
  int64_t expirations_total = 0;    // cache entries whose time to live ended
  int64_t preemptions_total = 0;

  // Of requests that were admitted, each counted once, at its first token or its end: the sums of
  // Usage. Every prompt token is of a document or of text, to which the preamble belongs.
  int64_t prompt_tokens_total = 0;
  int64_t cached_tokens_total = 0;  // documents from the pool and text
  int64_t document_pool_tokens_total = 0;
  int64_t document_joined_tokens_total = 0;    // encoded once for several requests
  int64_t document_computed_tokens_total = 0;  // misses
  int64_t text_cached_tokens_total = 0;
  int64_t generated_tokens_total = 0;
};

}  // namespace anyslot
