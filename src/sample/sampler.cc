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

bool is_plain_greedy(const SamplingParams& params, int64_t num_generated) {
  return params.temperature <= 0.0F && params.logit_bias.empty() &&
         params.repetition_penalty == 1.0F && params.presence_penalty == 0.0F &&
         params.frequency_penalty == 0.0F && num_generated >= params.min_tokens;
}

bool Sampler::is_better(const Candidate& a, const Candidate& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token_id < b.token_id;
}

// All tokens in the order of their ids, or the top_k best in any order that the logits determine.
void Sampler::collect_candidates(std::span<const float> logits, int top_k) {
  candidates_.clear();
  for (size_t i = 0; i < logits.size(); ++i) {
    candidates_.push_back({logits[i], static_cast<int32_t>(i), 0});
  }
  if (top_k == 0 || static_cast<size_t>(top_k) >= candidates_.size()) return;
  std::nth_element(candidates_.begin(), candidates_.begin() + top_k, candidates_.end(), is_better);
  candidates_.resize(static_cast<size_t>(top_k));
}

// Drops what min_p excludes, and what has no probability at all.
void Sampler::weigh_candidates(const SamplingParams& params) {
  const double best = std::min_element(candidates_.begin(), candidates_.end(), is_better)->logit;
  for (Candidate& candidate : candidates_) {
    candidate.weight = std::exp((double{candidate.logit} - best) / double{params.temperature});
  }
  std::erase_if(candidates_, [&params](const Candidate& candidate) {
    return candidate.weight == 0 || candidate.weight < double{params.min_p};
  });
}

// Sorting a whole vocabulary would cost more than all the rest, so a heap gives the best ones.
void Sampler::keep_top_p(float top_p) {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  const auto is_worse = [](const Candidate& a, const Candidate& b) { return is_better(b, a); };
  std::make_heap(candidates_.begin(), candidates_.end(), is_worse);
  auto kept = candidates_.end();
  double kept_weight = 0;
  while (kept != candidates_.begin() && kept_weight < double{top_p} * total) {
    std::pop_heap(candidates_.begin(), kept--, is_worse);
    kept_weight += kept->weight;
  }
  candidates_.erase(candidates_.begin(), kept);
}

int32_t Sampler::draw(double uniform) const {
  double total = 0;
  for (const Candidate& candidate : candidates_) total += candidate.weight;
  double target = uniform * total;
  for (const Candidate& candidate : candidates_) {
    target -= candidate.weight;
    if (target < 0) return candidate.token_id;
  }
  return candidates_.back().token_id;
}

int32_t Sampler::sample(const SampleInput& input) {
  const SamplingParams& params = input.params;
  const std::span<const float> logits = rules_.apply(input);
  if (params.temperature <= 0.0F) return argmax(logits);
  collect_candidates(logits, params.top_k);
  weigh_candidates(params);
  if (params.top_p < 1.0F) keep_top_p(params.top_p);
  return draw(
      uniform_number(params.seed, input.choice, input.prompt.size() + input.generated.size()));
}

}  // namespace anyslot
