#include "method_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>

namespace anyslot::cli {
namespace {

void note_difference(double difference, std::string_view where, PairDifference& pair) {
  if (!pair.where.empty() && difference <= pair.largest) return;
  pair.largest = difference;
  pair.where = where;
}

/// Whether rounding decides between the two tokens: no token has a better logit than either by more
/// than the tolerance.
bool is_near_tie(const std::vector<float>& logits, int32_t a, int32_t b) {
  const auto extremes = std::minmax_element(logits.begin(), logits.end());
  const double best = *extremes.second;
  const double largest = std::max(std::fabs(double{*extremes.first}), std::fabs(best));
  return std::ranges::all_of(std::array{a, b}, [&](int32_t token) {
    return best - double{logits[static_cast<size_t>(token)]} <= kLogitTolerance * largest;
  });
}

}  // namespace

std::string PairDifference::name() const {
  return fmt::format("{} and {}", method_name(a), method_name(b));
}

NextLogits next_logits_of(Engine& engine, const std::vector<Segment>& segments) {
  return [&engine, segments](Method method,
                             std::span<const int32_t> answer) -> Expected<std::vector<float>> {
    Request request;
    request.segments = segments;
    if (!answer.empty()) {
      Segment begun;
      begun.token_ids.assign(answer.begin(), answer.end());
      request.segments.push_back(std::move(begun));
    }
    request.sampling.max_tokens = 1;
    request.method = method;
    request.prompt_logits = true;
    Expected<Completion> completion = complete(engine, request);
    if (!completion) return completion.status();
    const std::vector<float>& logits = completion->prompt_logits;
    return std::vector<float>(logits.end() - engine.model().vocab_size, logits.end());
  };
}

Status add_difference(const Completion& a, const Completion& b, const NextLogits& next_logits,
                      std::string_view where, PairDifference& pair) {
  note_difference(relative_difference(a.prompt_logits, b.prompt_logits), where, pair);
  const auto [in_a, in_b] = std::ranges::mismatch(a.token_ids, b.token_ids);
  if (in_a == a.token_ids.end() && in_b == b.token_ids.end()) return {};
  bool excused = false;
  const std::span common(b.token_ids.begin(), in_b);
  if (in_a != a.token_ids.end() && in_b != b.token_ids.end()) {
    Expected<std::vector<float>> logits = next_logits(pair.a, common);
    if (!logits) return logits.status();
    Expected<std::vector<float>> reference = next_logits(pair.b, common);
    if (!reference) return reference.status();
    note_difference(relative_difference(*logits, *reference), where, pair);
    excused = is_near_tie(*reference, *in_a, *in_b);
  }
  if (excused) {
    pair.near_ties.push_back(fmt::format("{}, token {}", where, common.size() + 1));
  } else if (pair.unlike_answers.empty()) {
    pair.unlike_answers = where;
  }
  return {};
}

MethodComparison::MethodComparison()
    : pairs_{{Method::kLazy, Method::kBlock, 0, {}, {}, {}},
             {Method::kLazy, Method::kMepic, 0, {}, {}, {}},
             {Method::kBlock, Method::kMepic, 0, {}, {}, {}},
             {Method::kPrefix, Method::kFull, 0, {}, {}, {}}} {}

Status MethodComparison::add(Engine& engine, const std::vector<Document>& documents,
                             const std::string& question, int max_tokens, std::string_view where) {
  Expected<std::vector<Segment>> segments = engine.render_rag(documents, question);
  if (!segments) return segments.status();
  const auto ask = [&](Method method, bool prompt_logits) {
    Request request;
    request.segments = *segments;
    request.sampling.max_tokens = max_tokens;
    request.method = method;
    request.prompt_logits = prompt_logits;
    return complete(engine, request);
  };
  std::map<Method, Completion> completions;
  for (const Method method : kAllMethods) {
    Expected<Completion> completion = ask(method, true);
    if (!completion) return completion.status();
    completions[method] = *std::move(completion);
  }
  Expected<Completion> reused = ask(Method::kPrefix, false);  // logits are always computed anew
  if (!reused) return reused.status();
  completions[Method::kPrefix].token_ids = std::move(reused->token_ids);
  const NextLogits next_logits = next_logits_of(engine, *segments);
  for (PairDifference& pair : pairs_) {
    Status status =
        add_difference(completions[pair.a], completions[pair.b], next_logits, where, pair);
    if (!status.ok()) return status;
  }
  return {};
}

double relative_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size() || a.empty()) return std::numeric_limits<double>::infinity();
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!std::isfinite(a[i]) || !std::isfinite(b[i]))
      return std::numeric_limits<double>::infinity();
    largest = std::max({largest, std::fabs(double{a[i]}), std::fabs(double{b[i]})});
    difference = std::max(difference, std::fabs(double{a[i]} - double{b[i]}));
  }
  return difference == 0 ? 0 : difference / largest;
}

}  // namespace anyslot::cli
