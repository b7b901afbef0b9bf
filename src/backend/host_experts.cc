#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "backend/op_checks.h"
#include "backend/ops.h"

// The choice of experts, in host memory.

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

/// Where the rows of each expert begin in the list of all.
void count_rows(int64_t num_experts, ExpertRows& result) {
  result.begins.assign(static_cast<size_t>(num_experts) + 1, 0);
  for (const int32_t e : result.chosen) ++result.begins[static_cast<size_t>(e) + 1];
  for (size_t e = 1; e < result.begins.size(); ++e) result.begins[e] += result.begins[e - 1];
}

}  // namespace

Status Backend::choose_experts(const TensorView& logits, const ExpertChoice& choice,
                               ExpertRows& chosen) {
  if (Status status = check_choose_experts(logits, choice); !status) return status;
  const auto per_row = static_cast<size_t>(choice.per_row);
  const auto num_experts = static_cast<size_t>(logits.cols);
  const size_t total = static_cast<size_t>(logits.rows) * per_row;
  chosen.chosen.resize(total);
  chosen.rows.resize(total);
  chosen.shares.resize(total);
  const auto experts_of = [&](int64_t row) {
    return std::span(chosen.chosen).subspan(static_cast<size_t>(row) * per_row, per_row);
  };
  for (int64_t r = 0; r < logits.rows; ++r) {
    choose(std::span(logits.row_as<const float>(r), num_experts), experts_of(r));
  }
  count_rows(logits.cols, chosen);
  for (int64_t r = 0; r < logits.rows; ++r) {
    const std::span<const float> row(logits.row_as<const float>(r), num_experts);
    const std::span<const int32_t> experts = experts_of(r);
    const double largest = row[static_cast<size_t>(experts.front())];
    const double divisor = divisor_of_shares(row, experts, largest, choice.normalized);
    for (const int32_t e : experts) {
      const auto place = static_cast<size_t>(chosen.begins[static_cast<size_t>(e)]++);
      chosen.rows[place] = static_cast<int32_t>(r);
      chosen.shares[place] =
          static_cast<float>(std::exp(row[static_cast<size_t>(e)] - largest) / divisor);
    }
  }
  // Each begin has moved to its end, which is the next one's begin.
  std::ranges::copy_backward(std::span(chosen.begins).first(num_experts), chosen.begins.end());
  chosen.begins.front() = 0;
  return {};
}

}  // namespace anyslot
