#include "sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024.0;

Json field_json(const SweepField& field) {
  return {{"field", field.name}, {"label", field.label}, {"log", field.logarithmic}};
}

Json columns_json(const SweepFigure& figure) {
  Json columns = Json::array();
  const auto add = [&](std::string_view field, std::string_view label) {
    columns.push_back({{"field", field}, {"label", label}});
  };
  add("series", "method");
  add(figure.x.name, figure.x.label);
  add("completed", "answered");
  add("failed", "failed");
  add("mean_ttft_ms", "TTFT mean, ms");
  add("median_ttft_ms", "median");
  add("p99_ttft_ms", "p99");
  add("mean_tpot_ms", "TPOT mean, ms");
  add("request_throughput", "answers/s");
  add("output_throughput", "output tokens/s");
  add("hit_ratio", "hit ratio");
  add("cached_tokens", "cached tokens");
  add("peak_kv_mib", "KV in use, MiB");
  add("kv_tokens_read", "KV tokens read");
  add("blocks_copied", "blocks copied");
  return columns;
}

template <typename Value>
Json or_null(const std::optional<Value>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Json row_json(const SweepFigure& figure, const SweepPoint& point, Method method,
              const ServeMetrics& metrics) {
  Json row = {{"series", method_name(method)}, {figure.x.name, point.x}};
  row["completed"] = metrics.completed;
  row["failed"] = metrics.failed;
  row["mean_ttft_ms"] = metrics.ttft_ms.mean;
  row["median_ttft_ms"] = metrics.ttft_ms.median;
  row["p99_ttft_ms"] = metrics.ttft_ms.p99;
  row["mean_tpot_ms"] = metrics.tpot_ms.mean;
  row["request_throughput"] = metrics.request_throughput;
  row["output_throughput"] = metrics.output_throughput;
  row["hit_ratio"] = or_null(metrics.hit_ratio);
  row["cached_tokens"] = or_null(metrics.cached_tokens);
  row["kv_tokens_read"] = or_null(metrics.counters.kv_tokens_read);
  row["blocks_copied"] = or_null(metrics.counters.blocks_copied);
  row["peak_kv_mib"] = nullptr;
  if (metrics.peak_kv && metrics.peak_kv->bytes_per_block > 0) {
    row["peak_kv_mib"] = static_cast<double>(metrics.peak_kv->blocks_in_use) *
                         static_cast<double>(metrics.peak_kv->bytes_per_block) / kMiB;
  }
  return row;
}

Json figure_json(const SweepFigure& figure) {
  Json charts = Json::array();
  for (const SweepField& chart : figure.charts) charts.push_back(field_json(chart));
  return {{"id", figure.id},           {"title", figure.title}, {"text", figure.text},
          {"x", field_json(figure.x)}, {"charts", charts},      {"columns", columns_json(figure)},
          {"rows", Json::array()}};
}

}  // namespace

Expected<Json> run_sweep(const std::vector<SweepFigure>& figures,
                         const std::vector<Method>& methods, const RunPoint& run,
                         const std::function<bool()>& stopped,
                         const std::function<void(int64_t done)>& done) {
  Json result = Json::array();
  int64_t num_done = 0;
  for (const SweepFigure& figure : figures) {
    std::vector<std::pair<size_t, Json>> rows;  // and each one's method
    for (const SweepPoint& point : figure.points) {
      for (size_t m = 0; m < methods.size() && !stopped(); ++m) {
        const Expected<ServeResult> measured = run(point, methods[m]);
        if (!measured) return measured.status();
        if (!measured->stopped) {
          rows.emplace_back(m, row_json(figure, point, methods[m], measured->metrics));
        }
        done(++num_done);
      }
    }
    if (rows.empty()) continue;
    std::ranges::stable_sort(rows, {}, &std::pair<size_t, Json>::first);
    Json json = figure_json(figure);
    for (auto& [method, row] : rows) json["rows"].push_back(std::move(row));
    result.push_back(std::move(json));
  }
  return result;
}

int64_t failed_requests(const Json& figures) {
  int64_t failed = 0;
  for (const Json& figure : figures) {
    for (const Json& row : figure.at("rows")) failed += row.at("failed").get<int64_t>();
  }
  return failed;
}

}  // namespace anyslot::bench
