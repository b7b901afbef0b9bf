#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "anyslot/request.h"
#include "anyslot/result.h"
#include "base/hash.h"
#include "kv/keys.h"
#include "kv/kv_cache.h"
#include "plan/step_plan.h"
#include "request/token_segments.h"
#include "sched/method_traits.h"

namespace anyslot {

/// The scheduler's clients give the cache its ticks in this unit.
inline constexpr int64_t kTicksPerSecond = 1000;

enum class SpanRole : uint8_t {
  kText,            // private blocks and indexed text blocks
  kSharedDocument,  // the cache's blocks as they are
  kCopiedDocument,  // private blocks, copied from the cache's and re-turned
};

/// One span of a sequence: what was expanded from its segments, and what it holds while admitted.
struct SequenceSpan {
  SpanRole role = SpanRole::kText;
  int64_t begin = 0;  // prompt position of the first token
  int64_t end = 0;    // one past the last; the last span grows with the answer
  KeyForm key_form = KeyForm::kTurned;
  bool recompute_first_block = false;  // shared documents only
  bool indexed = false;                // text only: full blocks are looked up and entered
  Digest key;                          // of the document; or the chain that a text span starts from
  std::vector<Digest> block_keys;      // indexed text: of its full blocks, as far as known

  CacheEntry* entry = nullptr;  // documents; a copied one lets go of it once copied
  std::vector<BlockId>
      blocks;  // text: all of it; a document: its copy, or its recomputed first block
  std::vector<CacheEntry*>
      text_entries;  // owners of the first blocks of a text span; the other blocks are private
  int64_t num_computed = 0;   // tokens whose KV this sequence wrote or found (text, first block)
  int64_t num_scheduled = 0;  // tokens that the step in flight writes
  bool copied = false;
  bool copy_scheduled = false;

  int64_t num_tokens() const { return end - begin; }
  bool is_document() const { return role != SpanRole::kText; }
  /// Tokens that the sequence itself computes.
  int64_t num_own_tokens() const {
    if (!is_document()) return num_tokens();
    return recompute_first_block ? std::min<int64_t>(num_tokens(), kBlockSize) : 0;
  }
  int64_t num_known() const { return num_computed + num_scheduled; }
  /// The KV of all its tokens stands in the pool.
  bool is_complete() const {
    if (role == SpanRole::kCopiedDocument) return copied;
    if (is_document() && (entry == nullptr || entry->state != EntryState::kReady)) return false;
    return num_computed == num_own_tokens();
  }
};

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
  bool pin_done = false;
};

/// One choice of a request in the scheduler; or a document that is encoded ahead of its use: that
/// has no text, and ends when the document is ready.
struct Sequence {
  uint64_t id = 0;          // in order of arrival
  uint64_t request_id = 0;  // id of its choice 0
  int choice = 0;
  SamplingParams sampling;
  std::vector<int32_t> stop_token_ids;  // the model's own, unless ignored, and the request's
  bool prompt_logits = false;
  std::vector<int32_t> tokens;  // prompt, then answer; index = position
  int64_t num_prompt_tokens = 0;
  std::vector<SequenceSpan> spans;
  std::vector<GivenDocument> documents;
  Digest owner;                         // of its documents
  Tenant tenant;                        // of its pins
  std::vector<TokenRange> text_ranges;  // prompt positions of the text segments
  Usage usage;                          // token counts: set when first admitted
  bool has_answer = true;               // false: its one document is encoded ahead
  /// Its reuse is on the books: it was admitted before, or choice 0 speaks for it.
  bool usage_known = false;

  std::span<const int32_t> prompt() const {
    return std::span(tokens).first(static_cast<size_t>(num_prompt_tokens));
  }
  std::span<const int32_t> generated() const {
    return std::span(tokens).subspan(static_cast<size_t>(num_prompt_tokens));
  }
  int64_t num_generated() const { return static_cast<int64_t>(tokens.size()) - num_prompt_tokens; }
  SequenceSpan& last_span() { return spans.back(); }
  const SequenceSpan& last_span() const { return spans.back(); }
  /// Everything but the newest token has its KV.
  bool is_decoding() const {
    return num_generated() > 0 && last_span().num_computed + 1 == last_span().num_tokens() &&
           std::all_of(spans.begin(), spans.end() - 1,
                       [](const SequenceSpan& span) { return span.is_complete(); });
  }
  bool wants_logits_of(int64_t position) const {
    return prompt_logits &&
           std::any_of(text_ranges.begin(), text_ranges.end(),
                       [position](const TokenRange& range) { return range.contains(position); });
  }
};

/// Expands normalized segments (see normalize_segments) into the spans of a method.
std::unique_ptr<Sequence> expand_prompt(const std::vector<TokenSegment>& segments,
                                        const MethodTraits& traits, const KeyDomain& domain,
                                        const std::string& salt);

/// One document to be encoded ahead, for the requests of a method that encodes documents alone.
std::unique_ptr<Sequence> expand_document(const TokenSegment& document, const MethodTraits& traits,
                                          const KeyDomain& domain, const std::string& salt);

/// Choices 1 to n - 1 beside choice 0, which has not been submitted: the same prompt again, whose
/// usage they leave to choice 0. The caller sets the ids.
std::vector<std::unique_ptr<Sequence>> further_choices(const Sequence& first, int n);

/// Blocks of the pool that the sequence holds at once, at most: its distinct documents, its copies
/// and its text with `max_tokens` of answer.
int64_t max_blocks(const Sequence& sequence, int64_t max_tokens);

}  // namespace anyslot
