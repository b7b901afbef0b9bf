#include <fmt/format.h>

#include "cli/input_rows.h"
#include "workload_parts.h"

namespace anyslot::bench {

namespace {

/// Block-Attention's evaluation asks whether the answer stands in the output; its files can be told
/// by the name of the data set in theirs.
AnswerMetric metric_of(const std::string& path) {
  const std::string name = path.substr(path.find_last_of('/') + 1);
  for (const char* set : {"2wiki", "tqa", "hqa", "nq"}) {
    if (name.find(set) != std::string::npos) return AnswerMetric::kContains;
  }
  return AnswerMetric::kExactMatch;
}

}  // namespace

Expected<Requests> read_rag_rows(const WorkloadOptions& options) {
  constexpr int kDefaultAnswerTokens = 64;  // as `anyslot run`
  const Expected<std::vector<cli::InputRow>> rows = cli::load_input_rows(options.dataset_path);
  if (!rows) return rows.status();
  const AnswerMetric metric = metric_of(options.dataset_path);
  Requests requests;
  for (const cli::InputRow& row : *rows) {
    if (!row.segments.empty()) {
      return row_error(options.dataset_path, row.line,
                       "a row of segments cannot be sent to every server; give documents and a "
                       "question");
    }
    WorkloadRequest request;
    request.id = row.id.is_string() ? row.id.get<std::string>() : row.id.dump();
    for (const Document& document : row.documents) {
      request.documents.push_back({document.title, document.text, document.id, {}});
    }
    request.messages.push_back({ChatRole::kUser, row.question, {}});
    request.max_tokens = row.max_tokens.value_or(kDefaultAnswerTokens);
    request.answers = row.answers;
    request.metric = metric;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace anyslot::bench
