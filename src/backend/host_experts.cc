#include "backend/host_experts.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "backend/op_checks.h"

namespace anyslot {

namespace {

bool is_before(float logit, float other) {
  return logit > other || (std::isnan(other) && !std::isnan(logit));
}

/// The experts of the largest logits, the first of equal ones; logits that are no numbers come
/// last.
void choose(std::span<const float> logits, std::span<int32_t> chosen) {
  for (size_t k = 0; k < chosen.size(); ++k) {
    const auto earlier = chosen.first(k);
    int32_t best = -1;
    for (size_t e = 0; e < logits.size(); ++e) {
      const auto expert = static_cast<int32_t>(e);
      if (best >= 0 && !is_before(logits[e], logits[static_cast<size_t>(best)])) continue;
      if (std::ranges::find(earlier, expert) == earlier.end()) best = expert;
    }
    chosen[k] = best;
  }
}

/// What exp(logit - largest) is divided by to be a share.
double divisor_of_shares(std::span<const float> logits, std::span<const int32_t> chosen,
                         double largest, bool normalized) {
  double sum = 0;
  if (normalized) {
    for (const int32_t e : chosen) sum += std::exp(logits[static_cast<size_t>(e)] - largest);
  } else {
    for (const float logit : logits) sum += std::exp(logit - largest);
  }
  return sum;
}

}  // namespace

Status begin_choice(const TensorView& logits, const ExpertChoice& choice, ExpertRows& result) {
  if (Status status = check_choose_experts(logits, choice); !status) return status;
  const size_t total = static_cast<size_t>(logits.rows) * static_cast<size_t>(choice.per_row);
  result.chosen.resize(total);
  result.chosen_shares.resize(total);
  result.rows.resize(total);
  result.shares.resize(total);
  return {};
}

void choose_of_row(const TensorView& logits, const ExpertChoice& choice, int64_t r,
                   ExpertRows& result) {
  const auto per_row = static_cast<size_t>(choice.per_row);
  const size_t first = static_cast<size_t>(r) * per_row;
  const std::span<const float> row(logits.row_as<const float>(r), static_cast<size_t>(logits.cols));
  const std::span<int32_t> chosen = std::span(result.chosen).subspan(first, per_row);
  choose(row, chosen);
  const double largest = row[static_cast<size_t>(chosen.front())];
  const double divisor = divisor_of_shares(row, chosen, largest, choice.normalized);
  for (size_t k = 0; k < per_row; ++k) {
    const float logit = row[static_cast<size_t>(chosen[k])];
    result.chosen_shares[first + k] = static_cast<float>(std::exp(logit - largest) / divisor);
  }
}

void group_by_expert(int64_t num_experts, const ExpertChoice& choice, ExpertRows& result) {
  const auto count = static_cast<size_t>(num_experts);
  result.begins.assign(count + 1, 0);
  for (const int32_t e : result.chosen) ++result.begins[static_cast<size_t>(e) + 1];
  for (size_t e = 1; e <= count; ++e) result.begins[e] += result.begins[e - 1];
  for (size_t i = 0; i < result.chosen.size(); ++i) {
    const auto place = static_cast<size_t>(result.begins[static_cast<size_t>(result.chosen[i])]++);
    result.rows[place] = static_cast<int32_t>(i / static_cast<size_t>(choice.per_row));
    result.shares[place] = result.chosen_shares[i];
  }
  // Each begin has moved to its end, which is the next one's begin.
  std::ranges::copy_backward(std::span(result.begins).first(count), result.begins.end());
  result.begins.front() = 0;
}

Status Backend::choose_experts(const TensorView& logits, const ExpertChoice& choice,
                               ExpertRows& chosen) {
  if (Status status = begin_choice(logits, choice, chosen); !status) return status;
  for (int64_t r = 0; r < logits.rows; ++r) choose_of_row(logits, choice, r, chosen);
  group_by_expert(logits.cols, choice, chosen);
  return {};
}

}  // namespace anyslot
