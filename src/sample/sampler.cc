#include "sample/sampler.h"

#include <algorithm>
#include <cmath>

#include "sample/philox.h"

namespace anyslot {

namespace {

int32_t argmax(std::span<const float> logits) {
  return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

}  // namespace

// All tokens, or the top_k best, in descending order of logit.
void Sampler::collect_candidates(std::span<const float> logits, int top_k) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({logits[i], static_cast<int32_t>(i)});
  }
  const auto better = [](const Candidate& a, const Candidate& b) {
    return a.logit != b.logit ? a.logit > b.logit : a.token_id < b.token_id;
  };
  if (top_k > 0 && static_cast<size_t>(top_k) < candidates_.size()) {
    std::nth_element(candidates_.begin(), candidates_.begin() + top_k, candidates_.end(), better);
    candidates_.resize(static_cast<size_t>(top_k));
  }
  std::sort(candidates_.begin(), candidates_.end(), better);
}

int32_t Sampler::sample(std::span<const float> logits, const SamplingParams& params,
                        int64_t position) {
  if (params.temperature <= 0.0F) return argmax(logits);
  collect_candidates(logits, params.top_k);
  weights_.clear();
  double total = 0;
  for (const Candidate& candidate : candidates_) {
    const double distance = double{candidate.logit} - double{candidates_.front().logit};
    weights_.push_back(std::exp(distance / double{params.temperature}));
    total += weights_.back();
  }
  size_t kept = 0;
  double kept_total = 0;
  while (kept < weights_.size() && (kept == 0 || kept_total < double{params.top_p} * total)) {
    kept_total += weights_[kept++];
  }
  double target = uniform_number(params.seed, 0, static_cast<uint64_t>(position)) * kept_total;
  for (size_t i = 0; i + 1 < kept; ++i) {
    target -= weights_[i];
    if (target < 0) return candidates_[i].token_id;
  }
  return candidates_[kept - 1].token_id;
}

}  // namespace anyslot
