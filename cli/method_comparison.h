#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/engine.h"
#include "completion.h"

namespace anyslot::cli {

/// Differences up to this share of the largest logit are rounding of float32 (docs/design.md,
/// sections 3 and 8).
inline constexpr double kLogitTolerance = 1e-4;

/// How far two methods that must agree were apart at worst. The second one is the reference.
struct PairDifference {
  Method a;
  Method b;
  double largest = 0;                  // of |a - b|, as a share of the largest |logit|
  std::string where;                   // the case that it was seen in
  std::string unlike_answers;          // the first case whose greedy answers differ; empty: none
  std::vector<std::string> near_ties;  // cases and tokens where answers part, but may

  std::string name() const;
  bool within_rounding() const { return largest <= kLogitTolerance; }
  bool agrees() const { return within_rounding() && unlike_answers.empty(); }
};

/// The logits [vocab] of the token that a method puts after the prompt and these first tokens of
/// its answer.
using NextLogits =
    std::function<Expected<std::vector<float>>(Method method, std::span<const int32_t> answer)>;

NextLogits next_logits_of(Engine& engine, const std::vector<Segment>& segments);

/// Adds what two completions of one case, named `where`, show: the difference of their prompt
/// logits and of their answers. Where answers part, `next_logits` is asked for the logits of both
/// methods there, which must agree as well; the difference is excused if the reference's two best
/// logits, those of the two tokens, lie within the tolerance. What follows depends on the token and
/// is not compared. Fails as `next_logits` does.
Status add_difference(const Completion& a, const Completion& b, const NextLogits& next_logits,
                      std::string_view where, PairDifference& pair);

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
