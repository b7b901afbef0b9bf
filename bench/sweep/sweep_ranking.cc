#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <utility>

#include "sweep.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kTtft = "mean_ttft_ms";
constexpr const char* kTokens = "output_throughput";

/// The rows at the largest x of the figure with this id, one per method that answered.
std::vector<Json> last_rows(const Json& figures, std::string_view id) {
  const auto figure =
      std::ranges::find_if(figures, [&](const Json& json) { return json.at("id") == id; });
  if (figure == figures.end()) return {};
  const std::string x = figure->at("x").at("field");
  double largest = 0;
  for (const Json& row : figure->at("rows")) largest = std::max(largest, row.at(x).get<double>());
  std::vector<Json> rows;
  for (const Json& row : figure->at("rows")) {
    if (row.at(x) == largest && row.at("completed") > 0) rows.push_back(row);
  }
  return rows;
}

double number_at(const Json& row, const char* field) { return row.at(field).get<double>(); }

std::string name_of(const Json& row) { return row.at("series"); }

/// The rows, those with most tokens per second first.
std::vector<Json> by_throughput(std::vector<Json> rows) {
  std::ranges::stable_sort(rows, std::greater{},
                           [](const Json& row) { return number_at(row, kTokens); });
  return rows;
}

}  // namespace

Json sweep_ranking(const Json& figures) {
  std::vector<Json> rows = last_rows(figures, "rate-skewed");
  if (rows.size() < 2) return nullptr;
  std::ranges::stable_sort(rows, {}, [](const Json& row) { return number_at(row, kTtft); });
  const double least_ttft = number_at(rows.front(), kTtft);
  const double most_tokens = number_at(by_throughput(rows).front(), kTokens);
  for (Json& row : rows) {
    row["ttft_over_least"] = number_at(row, kTtft) / least_ttft;
    row["throughput_over_most"] = number_at(row, kTokens) / most_tokens;
  }
  Json columns = Json::array();
  for (const auto& [field, label] : std::initializer_list<std::pair<const char*, const char*>>{
           {"series", "method"},
           {kTtft, "TTFT mean, ms"},
           {"ttft_over_least", "over the least"},
           {kTokens, "output tokens/s"},
           {"throughput_over_most", "over the most"},
           {"cached_tokens", "cached tokens"},
           {"hit_ratio", "hit ratio"},
           {"peak_kv_mib", "KV in use, MiB"},
           {"kv_tokens_read", "KV tokens read"},
           {"blocks_copied", "blocks copied"}}) {
    columns.push_back({{"field", field}, {"label", label}});
  }
  return {{"request_rate", rows.front().at("request_rate")}, {"columns", columns}, {"rows", rows}};
}

std::string sweep_summary(const Json& ranking) {
  if (ranking.is_null()) return "";
  const std::vector<Json> rows = ranking.at("rows");
  const std::vector<Json> fast = by_throughput(rows);
  return fmt::format(
      "Documents come in a new order each time, some far more often than others. At {:g} requests "
      "per second {} answers first: {:.1f} ms to the first token, {:.2f} times sooner than {}. "
      "And {} generates most: {:.0f} tokens per second, {:.2f} times as many as {}.",
      ranking.at("request_rate").get<double>(), name_of(rows[0]), number_at(rows[0], kTtft),
      number_at(rows[1], kTtft) / number_at(rows[0], kTtft), name_of(rows[1]), name_of(fast[0]),
      number_at(fast[0], kTokens), number_at(fast[0], kTokens) / number_at(fast[1], kTokens),
      name_of(fast[1]));
}

}  // namespace anyslot::bench
