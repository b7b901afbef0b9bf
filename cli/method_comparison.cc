#include "method_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "completion.h"

namespace anyslot::cli {

std::string PairDifference::name() const {
  return fmt::format("{} and {}", method_name(a), method_name(b));
}

MethodComparison::MethodComparison()
    : pairs_{{Method::kLazy, Method::kBlock, 0, {}, {}},
             {Method::kLazy, Method::kMepic, 0, {}, {}},
             {Method::kBlock, Method::kMepic, 0, {}, {}},
             {Method::kPrefix, Method::kFull, 0, {}, {}}} {}

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
  for (PairDifference& pair : pairs_) {
    const Completion& a = completions[pair.a];
    const Completion& b = completions[pair.b];
    const double difference = relative_difference(a.prompt_logits, b.prompt_logits);
    if (pair.where.empty() || difference > pair.largest) {
      pair.largest = difference;
      pair.where = where;
    }
    if (pair.unlike_answers.empty() && a.token_ids != b.token_ids) pair.unlike_answers = where;
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
