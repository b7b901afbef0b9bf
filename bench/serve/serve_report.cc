#include "serve_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>

#include "cli/table.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

/// The columns that a table has room for; all others stand in the files.
const Column kShown[] = {
    {"method", "method", 0},
    {"completed", ">ok", 0},
    {"failed", ">failed", 0},
    {"request_throughput", ">req/s", 2},
    {"request_goodput", ">good/s", 2},
    {"output_throughput", ">out tok/s", 1},
    {"total_token_throughput", ">all tok/s", 1},
    {"mean_ttft_ms", ">TTFT ms", 1},
    {"mean_tpot_ms", ">TPOT ms", 2},
    {"hit_ratio", ">hits", 3},
    {"peak_kv_blocks_in_use", ">peak KV blocks", 0},
    {"exact_match", ">exact", 4},
    {"contains_match", ">contains", 4},
    {"f1", ">F1", 4},
    {"rouge_l", ">ROUGE-L", 4},
};

Json rate_json(double rate) { return std::isinf(rate) ? Json("inf") : Json(rate); }

std::string_view ramp_name(ArrivalOptions::Ramp ramp) {
  switch (ramp) {
    case ArrivalOptions::Ramp::kLinear:
      return "linear";
    case ArrivalOptions::Ramp::kExponential:
      return "exponential";
    case ArrivalOptions::Ramp::kNone:
      break;
  }
  return "";
}

Json name_json(const RunName& name) {
  return {{"method", name.method.empty() ? Json() : Json(name.method)},
          {"label", name.label.empty() ? Json() : Json(name.label)},
          {"model_id", name.model_id},
          {"dataset_name", name.workload}};
}

Json options_json(const ServeOptions& options) {
  const ArrivalOptions& arrivals = options.arrivals;
  const bool ramps = arrivals.ramp != ArrivalOptions::Ramp::kNone;
  return {{"num_prompts", options.num_prompts},
          {"request_rate", rate_json(arrivals.request_rate)},
          {"burstiness", rate_json(arrivals.burstiness)},
          {"max_concurrency", options.max_concurrency > 0 ? Json(options.max_concurrency) : Json()},
          {"ramp_up_strategy", ramps ? Json(ramp_name(arrivals.ramp)) : Json()},
          {"ramp_up_start_rps", ramps ? Json(arrivals.ramp_start_rps) : Json()},
          {"ramp_up_end_rps", ramps ? Json(arrivals.ramp_end_rps) : Json()},
          {"num_warmups", options.num_warmups},
          {"seed", options.seed}};
}

Json list_of(const ServeResult& result, const std::function<Json(const RequestRecord&)>& value) {
  Json list = Json::array();
  for (const RequestRecord& record : result.records) list.push_back(value(record));
  return list;
}

/// Times in seconds, as vLLM's file has them.
Json detail_json(const ServeResult& result) {
  const auto seconds = [](double ms) { return ms / 1e3; };
  const auto itls = [](const RequestRecord& record) {
    Json gaps = Json::array();
    for (const double gap : record.itl_ms) gaps.push_back(gap / 1e3);
    return gaps;
  };
  using Record = RequestRecord;
  return {{"start_times", list_of(result, [&](const Record& r) { return seconds(r.started_ms); })},
          {"input_lens", list_of(result, [](const Record& r) { return r.prompt_tokens; })},
          {"cached_lens", list_of(result,
                                  [](const Record& r) {
                                    return r.cached_tokens ? Json(*r.cached_tokens) : Json();
                                  })},
          {"output_lens", list_of(result, [](const Record& r) { return r.output_tokens; })},
          {"ttfts", list_of(result, [&](const Record& r) { return seconds(r.ttft_ms); })},
          {"e2els", list_of(result, [&](const Record& r) { return seconds(r.e2el_ms); })},
          {"itls", list_of(result, itls)},
          {"generated_texts", list_of(result, [](const Record& r) { return r.text; })},
          {"errors", list_of(result, [](const Record& r) { return r.error; })}};
}

Json whole_row(const RunName& name, const ServeOptions& options, const ServeResult& result,
               bool detailed) {
  Json row = name_json(name);
  row.update(options_json(options));
  row.update(metrics_json(result.metrics));
  row["stopped"] = result.stopped;
  if (detailed) row.update(detail_json(result));
  return row;
}

}  // namespace

Report serve_report(const Report::Facts& facts, const std::vector<NamedRun>& runs, bool detailed) {
  std::vector<Json> rows;
  for (const NamedRun& run : runs) {
    rows.push_back(whole_row(run.name, run.options, run.result, detailed));
  }
  std::vector<Column> columns;
  const Json names = whole_row({}, {}, {}, detailed);
  for (const auto& item : names.items()) {
    const std::string& name = item.key();
    const auto* shown = std::ranges::find(kShown, name, &Column::name);
    const bool known =
        std::ranges::any_of(rows, [&](const Json& row) { return !row[name].is_null(); });
    columns.push_back(shown == std::end(kShown) || !known ? Column{name, "", 0} : *shown);
  }
  Report report("serve", facts, std::move(columns));
  for (const Json& row : rows) {
    Report::Row cells;
    for (const auto& [name, value] : row.items()) cells.push_back(value);
    report.add_row(std::move(cells));
  }
  return report;
}

std::string latency_table(const std::vector<NamedRun>& runs) {
  cli::Table table({"method", "ms", ">mean", ">median", ">std", ">p90", ">p99"});
  for (const NamedRun& run : runs) {
    const ServeMetrics& metrics = run.result.metrics;
    const std::pair<const char*, const LatencySummary&> lines[] = {{"TTFT", metrics.ttft_ms},
                                                                   {"TPOT", metrics.tpot_ms},
                                                                   {"ITL", metrics.itl_ms},
                                                                   {"E2EL", metrics.e2el_ms}};
    for (const auto& [what, summary] : lines) {
      const auto cell = [](double value) { return fmt::format("{:.2f}", value); };
      table.add_row({run.name.method.empty() ? "-" : run.name.method, what, cell(summary.mean),
                     cell(summary.median), cell(summary.std), cell(summary.p90),
                     cell(summary.p99)});
    }
  }
  return table.text();
}

std::string failure_text(const ServeResult& result) {
  if (result.metrics.failed == 0) return "";
  std::string reasons;
  for (const auto& [reason, count] : result.metrics.failures) {
    reasons += fmt::format("{}{} {}", reasons.empty() ? "" : ", ", count, reason);
  }
  const auto first = std::ranges::find_if(result.records, [](const RequestRecord& record) {
    return !record.ok() && record.failure != Failure::kCancelled;
  });
  return fmt::format("{} of {} requests failed: {}; the first: {}", result.metrics.failed,
                     result.records.size(), reasons,
                     first == result.records.end() ? "unknown" : first->error);
}

}  // namespace anyslot::bench
