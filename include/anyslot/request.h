#pragma once

#include <cstdint>
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

/// A run of tokens of a request, given as text or as token ids (token_ids win when both are set).
struct Segment {
  SegmentKind kind = SegmentKind::kText;
  std::string text;
  std::vector<int32_t> token_ids;
  /// The bytes of `text` that a template wrote. Special tokens match only inside them.
  std::vector<ByteRange> markup;
  std::string id;  // echoed in DocumentUsage; empty: none
};

struct SamplingParams {
  float temperature = 0.0F;  // 0: greedy
  float top_p = 1.0F;        // (0, 1]
  int top_k = 0;             // 0: off
  uint64_t seed = 0;
  int max_tokens = 64;  // to generate, at least 1; the model's length may end the answer sooner
  std::vector<int32_t> stop_token_ids;  // in addition to the model's own
  bool ignore_eos = false;              // the model's own stop tokens do not stop: for measuring
};

struct Request {
  std::vector<Segment> segments;  // in prompt order; the last one must be text
  SamplingParams sampling;
  std::optional<Method> method;  // unset: the engine's default
  std::string cache_salt;        // documents are shared only between requests of the same salt
  /// Also return the logits of every token of the text segments (float32, [num_text_tokens,
  /// vocab]). Cached text is not reused for such a request.
  bool prompt_logits = false;
};

}  // namespace anyslot
