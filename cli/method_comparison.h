#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "anyslot/engine.h"

namespace anyslot::cli {

/// Differences up to this share of the largest logit are rounding of float32 (docs/design.md,
/// section 3).
inline constexpr double kLogitTolerance = 1e-4;

/// How far two methods that must agree were apart at worst.
struct PairDifference {
  Method a;
  Method b;
  double largest = 0;          // of |a - b|, as a share of the largest |logit|
  std::string where;           // the case that it was seen in
  std::string unlike_answers;  // the first case whose greedy answers differ; empty: none

  std::string name() const;
  bool within_rounding() const { return largest <= kLogitTolerance; }
  bool agrees() const { return within_rounding() && unlike_answers.empty(); }
};

/// Compares the logits of every token of the question, and the greedy answers, under all five
/// methods.
class MethodComparison {
 public:
  MethodComparison();
  /// Six requests: `prefix` is asked twice, its second answer comes from reused KV. `where` names
  /// the case for people.
  Status add(Engine& engine, const std::vector<Document>& documents, const std::string& question,
             int max_tokens, std::string_view where);
  /// lazy-block, lazy-mepic, block-mepic, prefix-full.
  const std::vector<PairDifference>& pairs() const { return pairs_; }

 private:
  std::vector<PairDifference> pairs_;
};

/// The largest difference as a share of the largest magnitude; infinite when the sizes differ or a
/// value is not a number.
double relative_difference(const std::vector<float>& a, const std::vector<float>& b);

}  // namespace anyslot::cli
