#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "input_rows.h"

namespace anyslot::cli {

/// A question with its documents in one order, to be asked once per method.
struct DemoRequest {
  std::vector<Document> documents;
  std::string question;
  std::vector<std::string> answers;
};

struct DemoPlan {
  DemoRequest warm_up;  // the documents in an order of its own
  std::vector<DemoRequest> requests;
  size_t num_questions = 0;
  size_t num_documents = 0;
};

/// Every question of `rows`, which share their documents, and two on the order of the documents, in
/// `orders` shuffles each. No order comes twice, the warm-up's included, before all orders of the
/// documents have come. The same seed gives the same plan.
DemoPlan plan_demo(const std::vector<InputRow>& rows, int orders, uint64_t seed);

struct MethodResult {
  Method method;
  std::vector<double> ttfts_ms;  // one per request
  int64_t prompt_tokens = 0;
  int64_t cached_tokens = 0;
  int64_t exact_matches = 0;

  double ttft_ms() const;  // the median
  double cached_share() const;
  double exact_match_share() const;
};

/// Asks the plan's warm-up once per method, so that every method's cache holds the documents.
/// Returns the tokens of all documents.
Expected<int64_t> warm_up(Engine& engine, const DemoPlan& plan);

/// Asks every request once per method, one at a time; which method comes first rotates. In the
/// order of kAllMethods.
Expected<std::vector<MethodResult>> measure_methods(
    Engine& engine, const DemoPlan& plan,
    const std::function<void(int64_t requests_done)>& progress);

}  // namespace anyslot::cli
