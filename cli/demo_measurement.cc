#include "demo_measurement.h"

#include <algorithm>
#include <iterator>
#include <random>
#include <set>
#include <tuple>
#include <utility>

#include "answer_metrics.h"
#include "completion.h"
#include "statistics.h"

namespace anyslot::cli {
namespace {

constexpr int kMaxAnswerTokens = 24;

/// Fisher-Yates with numbers that are the same on every machine (std::shuffle's are not).
void shuffle(std::vector<Document>& documents, std::mt19937_64& random) {
  for (size_t i = documents.size(); i > 1; --i)
    std::swap(documents[i - 1], documents[random() % i]);
}

using Order = std::vector<std::pair<std::string, std::string>>;  // titles and texts

Order order_of(const std::vector<Document>& documents) {
  Order order;
  for (const Document& document : documents) {
    order.emplace_back(document.title.value_or(""), document.text);
  }
  return order;
}

/// Gives the documents a random order that is not in `seen`, and notes it. When every order has
/// been seen, all are new again.
void bring_into_new_order(std::vector<Document>& documents, std::set<Order>& seen,
                          std::mt19937_64& random) {
  shuffle(documents, random);
  const Order first = order_of(documents);
  while (seen.contains(order_of(documents))) {
    std::ranges::next_permutation(documents, {}, [](const Document& document) {
      return std::tie(document.title, document.text);
    });
    if (order_of(documents) == first) seen.clear();
  }
  seen.insert(order_of(documents));
}

Expected<Completion> ask(Engine& engine, const DemoRequest& question, Method method) {
  Expected<std::vector<Segment>> segments =
      engine.render_rag(question.documents, question.question);
  if (!segments) return segments.status();
  Request request;
  request.segments = *std::move(segments);
  request.sampling.max_tokens = kMaxAnswerTokens;
  request.method = method;
  request.cache_salt = method_name(method);  // no method profits from what another has computed
  return complete(engine, request);
}

void add(const DemoRequest& question, const Completion& completion, MethodResult& result) {
  result.ttfts_ms.push_back(completion.usage.ttft_ms);
  result.prompt_tokens += completion.usage.prompt_tokens;
  result.cached_tokens += completion.usage.cached_tokens;
  result.exact_matches += score_answer(completion.text, question.answers).exact_match ? 1 : 0;
}

double share(int64_t part, double whole) {
  return whole > 0 ? static_cast<double>(part) / whole : 0;
}

}  // namespace

double MethodResult::ttft_ms() const { return median(ttfts_ms); }
double MethodResult::cached_share() const {
  return share(cached_tokens, static_cast<double>(prompt_tokens));
}
double MethodResult::exact_match_share() const {
  return share(exact_matches, static_cast<double>(ttfts_ms.size()));
}

DemoPlan plan_demo(const std::vector<InputRow>& rows, int orders, uint64_t seed) {
  DemoPlan plan;
  plan.num_questions = rows.size() + 2;
  plan.num_documents = rows.front().documents.size();
  plan.warm_up = {rows.front().documents, rows.front().question, rows.front().answers};
  std::mt19937_64 random(seed);
  std::set<Order> seen = {order_of(plan.warm_up.documents)};
  for (int o = 0; o < orders; ++o) {
    for (size_t q = 0; q < plan.num_questions; ++q) {
      // The two questions on the order show that documents are where the prompt puts them.
      const InputRow& row = rows[q < rows.size() ? q : 0];
      DemoRequest request{row.documents, row.question, row.answers};
      bring_into_new_order(request.documents, seen, random);
      if (q == rows.size()) {
        request.question = "What is the title of the first document?";
        request.answers = {request.documents.front().title.value_or("")};
      } else if (q > rows.size()) {
        request.question = "What is the title of the last document?";
        request.answers = {request.documents.back().title.value_or("")};
      }
      plan.requests.push_back(request);
    }
  }
  return plan;
}

Expected<int64_t> warm_up(Engine& engine, const DemoPlan& plan) {
  int64_t document_tokens = 0;
  for (const Method method : kAllMethods) {
    Expected<Completion> completion = ask(engine, plan.warm_up, method);
    if (!completion) return completion.status();
    document_tokens = 0;
    for (const DocumentUsage& document : completion->usage.documents) {
      document_tokens += document.tokens;
    }
  }
  return document_tokens;
}

Expected<std::vector<MethodResult>> measure_methods(
    Engine& engine, const DemoPlan& plan,
    const std::function<void(int64_t requests_done)>& progress) {
  std::vector<MethodResult> results;
  for (const Method method : kAllMethods) results.push_back({method, {}, 0, 0, 0});
  for (size_t r = 0; r < plan.requests.size(); ++r) {
    for (size_t m = 0; m < results.size(); ++m) {
      MethodResult& result = results[(r + m) % results.size()];
      Expected<Completion> completion = ask(engine, plan.requests[r], result.method);
      if (!completion) return completion.status();
      add(plan.requests[r], *completion, result);
    }
    progress(static_cast<int64_t>(r) + 1);
  }
  return results;
}

}  // namespace anyslot::cli
