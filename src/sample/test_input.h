#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "sample/logit_rules.h"

namespace anyslot::testing_sample {

/// A SampleInput with memory of its own.
struct OwnedInput {
  std::vector<float> logits;
  SamplingParams params;
  std::vector<int32_t> prompt;
  std::vector<int32_t> generated;
  std::vector<int32_t> forbidden;
  uint32_t choice = 0;

  SampleInput view() const { return {logits, params, prompt, generated, forbidden, choice}; }
};

inline std::vector<float> random_logits(std::mt19937& random, size_t vocab) {
  std::normal_distribution<float> normal(0.0F, 3.0F);
  std::vector<float> logits(vocab);
  for (float& logit : logits) logit = normal(random);
  return logits;
}

inline std::vector<int32_t> random_ids(std::mt19937& random, size_t count, size_t vocab) {
  std::vector<int32_t> ids(count);
  for (int32_t& id : ids) id = static_cast<int32_t>(random() % vocab);
  return ids;
}

}  // namespace anyslot::testing_sample
