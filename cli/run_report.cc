#include "run_report.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "answer_metrics.h"
#include "statistics.h"

namespace anyslot::cli {
namespace {

using Json = nlohmann::ordered_json;

double rounded(double value, double scale) { return std::round(value * scale) / scale; }
double milliseconds(double value) { return rounded(value, 1e3); }
double share(double value) { return rounded(value, 1e6); }

std::string line_of(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Json documents_of(const Usage& usage) {
  Json documents = Json::array();
  for (const DocumentUsage& document : usage.documents) {
    documents.push_back({{"index", document.index},
                         {"id", document.id.empty() ? Json() : Json(document.id)},
                         {"tokens", document.tokens},
                         {"cached_tokens", document.cached_tokens},
                         {"source", document_source_name(document.source)}});
  }
  return documents;
}

}  // namespace

std::string row_output(const InputRow& row, const Completion& completion, Method method) {
  const Usage& usage = completion.usage;
  return line_of(
      {{"id", row.id},
       {"text", completion.text},
       {"token_ids", completion.token_ids},
       {"finish_reason", finish_reason_name(completion.finish_reason)},
       {"method", method_name(method)},
       {"usage",
        {{"prompt_tokens", usage.prompt_tokens},
         {"completion_tokens", usage.completion_tokens},
         {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}}}},
       {"documents", documents_of(usage)},
       {"timing",
        {{"ttft_ms", milliseconds(usage.ttft_ms)}, {"total_ms", milliseconds(usage.total_ms)}}}});
}

void RunSummary::add(const InputRow& row, const Completion& completion) {
  if (!row.answers.empty()) {
    const AnswerScore score = score_answer(completion.text, row.answers);
    ++scored_;
    exact_match_ += score.exact_match ? 1 : 0;
    contains_match_ += score.contains_match ? 1 : 0;
    f1_ += score.f1;
  }
  prompt_tokens_ += completion.usage.prompt_tokens;
  cached_tokens_ += completion.usage.cached_tokens;
  completion_tokens_ += completion.usage.completion_tokens;
  ttft_ms_.push_back(completion.usage.ttft_ms);
}

std::string RunSummary::text(double seconds, int64_t kv_tokens_read) const {
  const auto mean = [&](double sum) {
    return scored_ == 0 ? Json() : Json(share(sum / static_cast<double>(scored_)));
  };
  const auto per_second = [&](int64_t tokens) {
    return seconds > 0 ? rounded(static_cast<double>(tokens) / seconds, 10) : 0.0;
  };
  const auto prompt_tokens = static_cast<double>(prompt_tokens_);
  const double cached =
      prompt_tokens > 0 ? static_cast<double>(cached_tokens_) / prompt_tokens : 0.0;
  return line_of({{"requests", ttft_ms_.size()},
                  {"exact_match", mean(exact_match_)},
                  {"contains_match", mean(contains_match_)},
                  {"f1", mean(f1_)},
                  {"ttft_ms",
                   {{"median", milliseconds(median(ttft_ms_))},
                    {"p95", milliseconds(percentile(ttft_ms_, 95))}}},
                  {"cached_token_ratio", share(cached)},
                  {"kv_tokens_read", kv_tokens_read},
                  {"prompt_tokens_per_second", per_second(prompt_tokens_)},
                  {"output_tokens_per_second", per_second(completion_tokens_)}});
}

}  // namespace anyslot::cli
