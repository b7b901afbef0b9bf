#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sample/logit_rules.h"

namespace anyslot {

/// Whether Sampler takes the likeliest of the unchanged logits for the token after `num_generated`.
bool is_plain_greedy(const SamplingParams& params, int64_t num_generated);

/// Chooses the next token of a choice, as SamplingParams describes. The token depends on the input
/// alone: greedy takes the lowest id of equal logits, and the random number is that of (seed,
/// choice, position), the position being the token's own place in the sequence.
class Sampler {
 public:
  int32_t sample(const SampleInput& input);

 private:
  struct Candidate {
    float logit;
    int32_t token_id;
    double weight;  // its probability over that of the likeliest token
  };
  static bool is_better(const Candidate& a, const Candidate& b);

  void collect_candidates(std::span<const float> logits, int top_k);
  void weigh_candidates(const SamplingParams& params);
  void keep_top_p(float top_p);
  int32_t draw(double uniform) const;

  LogitRules rules_;
  std::vector<Candidate> candidates_;  // kept between calls for its memory
};

}  // namespace anyslot
