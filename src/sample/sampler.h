#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "anyslot/request.h"

namespace anyslot {

/// Chooses the token at `position` (the token's own place in the sequence) from its logits.
/// Greedy at temperature 0, the lowest id winning ties; else from the softmax of logits /
/// temperature, cut to the top_k best and then to the smallest set whose probability reaches top_p.
class Sampler {
 public:
  int32_t sample(std::span<const float> logits, const SamplingParams& params, int64_t position);

 private:
  struct Candidate {
    float logit;
    int32_t token_id;
  };
  void collect_candidates(std::span<const float> logits, int top_k);
  std::vector<Candidate> candidates_;  // kept between calls for its memory
  std::vector<double> weights_;
};

}  // namespace anyslot
