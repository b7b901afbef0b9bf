#include "sample/logprobs.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

namespace anyslot {

namespace {

double log_sum_exp(std::span<const float> logits) {
  const double largest = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(double{logit} - largest);
  return largest + std::log(sum);
}

std::vector<int32_t> likeliest(std::span<const float> logits, int count) {
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto end = ids.begin() + std::min<std::ptrdiff_t>(count, std::ssize(ids));
  std::partial_sort(ids.begin(), end, ids.end(), [logits](int32_t a, int32_t b) {
    const float logit_a = logits[static_cast<size_t>(a)];
    const float logit_b = logits[static_cast<size_t>(b)];
    return logit_a != logit_b ? logit_a > logit_b : a < b;
  });
  ids.erase(end, ids.end());
  return ids;
}

}  // namespace

TokenLogprobs token_logprobs(std::span<const float> logits, int32_t token, int num_top) {
  const double total = log_sum_exp(logits);
  const auto logprob_of = [&](int32_t id) {
    return TokenLogprob{id, static_cast<float>(double{logits[static_cast<size_t>(id)]} - total)};
  };
  TokenLogprobs result{logprob_of(token), {}};
  if (num_top == 0) return result;
  for (const int32_t id : likeliest(logits, num_top)) result.top.push_back(logprob_of(id));
  return result;
}

}  // namespace anyslot
