#include "sample/logit_rules.h"

#include <limits>

namespace anyslot {

namespace {

bool changes_logits(const SampleInput& input) {
  const SamplingParams& params = input.params;
  return !params.logit_bias.empty() || !input.forbidden.empty() ||
         params.repetition_penalty != 1.0F || params.presence_penalty != 0.0F ||
         params.frequency_penalty != 0.0F;
}

}  // namespace

std::span<const float> LogitRules::apply(const SampleInput& input) {
  if (!changes_logits(input)) return input.logits;
  logits_.assign(input.logits.begin(), input.logits.end());
  counts_.resize(logits_.size());
  for (const auto& [token, bias] : input.params.logit_bias) {
    logits_[static_cast<size_t>(token)] += bias;
  }
  for (const int32_t token : input.forbidden) {
    if (static_cast<size_t>(token) < logits_.size()) {
      logits_[static_cast<size_t>(token)] = -std::numeric_limits<float>::infinity();
    }
  }
  if (input.params.repetition_penalty != 1.0F) penalize_repetition(input);
  penalize_presence_and_frequency(input);
  return logits_;
}

void LogitRules::penalize_repetition(const SampleInput& input) {
  const float penalty = input.params.repetition_penalty;
  for (const std::span<const int32_t> tokens : {input.prompt, input.generated}) {
    for (const int32_t token : tokens) {
      if (counts_[static_cast<size_t>(token)]++ > 0) continue;
      float& logit = logits_[static_cast<size_t>(token)];
      logit = logit > 0 ? logit / penalty : logit * penalty;
    }
  }
  for (const std::span<const int32_t> tokens : {input.prompt, input.generated}) {
    for (const int32_t token : tokens) counts_[static_cast<size_t>(token)] = 0;
  }
}

void LogitRules::penalize_presence_and_frequency(const SampleInput& input) {
  const float presence = input.params.presence_penalty;
  const float frequency = input.params.frequency_penalty;
  if (presence == 0.0F && frequency == 0.0F) return;
  for (const int32_t token : input.generated) ++counts_[static_cast<size_t>(token)];
  for (const int32_t token : input.generated) {
    int32_t& count = counts_[static_cast<size_t>(token)];
    if (count == 0) continue;
    logits_[static_cast<size_t>(token)] -= presence + frequency * static_cast<float>(count);
    count = 0;
  }
}

}  // namespace anyslot
