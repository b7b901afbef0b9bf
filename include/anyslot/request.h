#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"

namespace anyslot {

enum class SegmentKind : uint8_t {
  kDocument,  // its tokens see only earlier tokens of itself
  kText,      // its tokens see everything before them
};

/// Bytes [begin, end) of a text.
struct ByteRange {
  size_t begin = 0;
  size_t end = 0;
};

/// Bytes of a segment's id, at most.
inline constexpr size_t kMaxIdBytes = 256;
/// Seconds of a segment's time to live, at most: ten years.
inline constexpr int64_t kMaxTtlSeconds = 315'360'000;
/// What SamplingParams may hold, at most.
inline constexpr int kMaxChoices = 128;
inline constexpr int kMaxTopLogprobs = 20;
inline constexpr size_t kMaxStopStrings = 64;
inline constexpr size_t kMaxStopStringBytes = 1024;
inline constexpr size_t kMaxStopTokens = 1024;
inline constexpr size_t kMaxLogitBiases = 1024;  // each costs time at every token

/// A run of tokens of a request, given as text or as token ids (token_ids win when both are set).
struct Segment {
  SegmentKind kind = SegmentKind::kText;
  std::string text;
  std::vector<int32_t> token_ids;
  /// The bytes of `text` that a template wrote. Special tokens match only inside them.
  std::vector<ByteRange> markup;
  std::string id;  // echoed in DocumentUsage, at most 256 bytes; empty: none
  /// Of a document, under a method that encodes documents alone: spares it from eviction until it
  /// is unpinned. Pinned documents take at most half of the KV cache, those of one tenant at most a
  /// quarter; one that cannot be pinned fails the request.
  bool pin = false;
  /// Of such a document: its time to live, [1, 315360000] seconds after its latest use. After it,
  /// the document is cold. 0: without limit; unset: as requests before had it.
  std::optional<int64_t> ttl_seconds = std::nullopt;
  /// Of a document: spares it from eviction for so many seconds, [0, 315360000], after this use,
  /// where pins have room for it and the method encodes documents alone; a longer hold that it has
  /// stays. 0: off.
  int64_t hold_seconds = 0;
  std::string name = {};  // what errors call it; empty: "segments[INDEX]"
};

/// How tokens are chosen and what ends an answer. submit() refuses values outside the ranges given
/// here. From the logits to the token: logit_bias is added; stop tokens are ruled out while
/// min_tokens is not reached; the penalties apply, repetition first; then temperature 0 takes the
/// best token, and any other divides by the temperature, keeps what min_p and top_k allow, cuts
/// that to top_p and draws from the rest.
struct SamplingParams {
  float temperature = 0.0F;  // [0, 100]; 0: greedy
  float top_p = 1.0F;        // (0, 1]: the likeliest tokens whose probabilities reach it
  int top_k = 0;             // the likeliest that many; 0: off
  float min_p = 0.0F;  // [0, 1]: tokens at least that likely, relative to the likeliest; 0: off
  /// [0.01, 100]: positive logits of tokens that stand in the prompt or the answer are divided by
  /// it, negative ones multiplied. 1: off.
  float repetition_penalty = 1.0F;
  float presence_penalty = 0.0F;   // [-2, 2]: subtracted once for a token that stands in the answer
  float frequency_penalty = 0.0F;  // [-2, 2]: subtracted for each time it stands in the answer
  std::map<int32_t, float> logit_bias;  // token id -> [-100, 100], added to its logit; at most 1024

  /// Random numbers depend on (seed, choice, position of the token) and nothing else.
  uint64_t seed = 0;
  int n = 1;  // [1, 128] choices: answers to the same prompt, which share its documents

  int max_tokens = 64;  // to generate, at least 1; the model's length may end the answer sooner
  int min_tokens = 0;   // [0, max_tokens]: nothing that completes within them stops the answer
  std::vector<int32_t> stop_token_ids;  // in addition to the model's own; at most 1024
  /// The answer ends as soon as its text holds one of them, in whatever tokens. At most 64, of 1 to
  /// 1024 bytes of UTF-8; needs a tokenizer.
  std::vector<std::string> stop;
  bool include_stop_in_output = false;  // the text then shows the stop string or token
  bool ignore_eos = false;              // the model's own stop tokens do not stop: for measuring

  bool logprobs = false;  // also return the log-probability of each generated token
  int top_logprobs = 0;   // [0, 20]: and of that many likeliest at its place; needs logprobs
};

struct Request {
  std::vector<Segment> segments;  // in prompt order; the last one must be text
  SamplingParams sampling;
  std::optional<Method> method;  // unset: the engine's default
  /// Cut max_tokens to what the KV cache can hold, as it is to what the model's length leaves.
  bool fit_max_tokens = false;
  std::string cache_salt;  // documents are shared only between requests of the same salt
  /// Who asks, of several who must not disturb each other: has a share of pins. A salt should be
  /// one tenant's only. Empty: nobody in particular, without a share.
  std::string tenant;
  /// Also return the logits of every token of the text segments (float32, [num_text_tokens,
  /// vocab]), with choice 0. Cached text is not reused for such a request.
  bool prompt_logits = false;
};

}  // namespace anyslot
