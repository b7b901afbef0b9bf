#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "anyslot/request.h"

namespace anyslot {

/// The state of one choice when its next token is due.
struct SampleInput {
  std::span<const float> logits;  // [vocab], finite
  const SamplingParams& params;
  std::span<const int32_t> prompt;     // token ids, all of them below vocab
  std::span<const int32_t> generated;  // the answer so far
  std::span<const int32_t>
      forbidden;  // tokens that must not come now; ids past the vocabulary are ignored
  uint32_t choice = 0;
};

/// Changes logits by the bias, the forbidden tokens and the penalties of a request, in this order.
/// Keeps memory between calls, nothing else.
class LogitRules {
 public:
  /// The input's own logits where nothing applies; else memory of this object, valid until the next
  /// call. Forbidden tokens get -infinity.
  std::span<const float> apply(const SampleInput& input);

 private:
  void penalize_repetition(const SampleInput& input);
  void penalize_presence_and_frequency(const SampleInput& input);

  std::vector<float> logits_;
  std::vector<int32_t> counts_;  // [vocab], zero between calls
};

}  // namespace anyslot
