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
    : pairs_{{Method::kLazy, Method::kBlock, 0, {}},
             {Method::kLazy, Method::kMepic, 0, {}},
             {Method::kBlock, Method::kMepic, 0, {}},
             {Method::kPrefix, Method::kFull, 0, {}}} {}

Status MethodComparison::add(Engine& engine, const std::vector<Document>& documents,
                             const std::string& question, std::string_view where) {
  Expected<std::vector<Segment>> segments = engine.render_rag(documents, question);
  if (!segments) return segments.status();
  std::map<Method, std::vector<float>> logits;
  for (const Method method : kAllMethods) {
    Request request;
    request.segments = *segments;
    request.sampling.max_tokens = 1;
    request.method = method;
    request.prompt_logits = true;
    Expected<Completion> completion = complete(engine, std::move(request));
    if (!completion) return completion.status();
    logits[method] = std::move(completion->prompt_logits);
  }
  for (PairDifference& pair : pairs_) {
    const double difference = relative_difference(logits[pair.a], logits[pair.b]);
    if (pair.where.empty() || difference > pair.largest) {
      pair.largest = difference;
      pair.where = where;
    }
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
