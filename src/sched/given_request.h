#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "anyslot/request.h"
#include "base/hash.h"
#include "kv/keys.h"
#include "kv/kv_cache.h"
#include "request/token_segments.h"
#include "sched/method_traits.h"
#include "sched/sequence_span.h"

namespace anyslot {

/// The scheduler's clients give the cache its ticks in this unit.
inline constexpr int64_t kTicksPerSecond = 1000;

/// Positions [begin, end) of a prompt.
struct TokenRange {
  int64_t begin = 0;
  int64_t end = 0;
  bool contains(int64_t position) const { return begin <= position && position < end; }
};

/// A document that the request gave: where it stands in the prompt, for the usage report, and how
/// the cache is to keep it.
struct GivenDocument {
  std::string id;
  int64_t begin = 0;
  int64_t end = 0;
  bool pin = false;
  std::optional<int64_t> time_to_live;  // in ticks of the cache; 0: none
  int64_t hold = 0;                     // in ticks; 0: none
};

/// A request, or a document to be encoded ahead of its use, as it was given: what its choices
/// share. Nothing changes it once they are submitted.
struct GivenRequest {
  SamplingParams sampling;
  std::vector<int32_t> stop_token_ids;  // the model's own, unless ignored, and the request's
  bool prompt_logits = false;           // choice 0 gives them
  std::vector<int32_t> prompt;
  std::vector<SequenceSpan> spans;  // of the prompt; each choice has its own once it is admitted
  std::vector<GivenDocument> documents;
  Digest owner;                         // of its documents
  Tenant tenant;                        // of its pins
  std::vector<TokenRange> text_ranges;  // prompt positions of the text segments
  bool has_answer = true;               // false: its one document is encoded ahead

  int64_t num_prompt_tokens() const { return static_cast<int64_t>(prompt.size()); }
};

/// Expands normalized segments (see normalize_segments) into the spans of a method.
GivenRequest expand_prompt(const std::vector<TokenSegment>& segments, const MethodTraits& traits,
                           const KeyDomain& domain, const std::string& salt);

/// One document to be encoded ahead, for the requests of a method that encodes documents alone.
GivenRequest expand_document(const TokenSegment& document, const MethodTraits& traits,
                             const KeyDomain& domain, const std::string& salt);

/// Blocks of the pool that a choice holds at once, at most: its distinct documents, its copies and
/// its text with `max_tokens` of answer.
int64_t max_blocks(const GivenRequest& request, int64_t max_tokens);

/// Makes max_tokens smaller so that max_blocks is by `too_many` blocks, if that is above 0; but not
/// smaller than 1 or min_tokens.
void cut_answer(GivenRequest& request, int64_t too_many);

}  // namespace anyslot
