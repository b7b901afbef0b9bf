#include "metrics.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "cli/statistics.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

std::optional<int64_t> growth(const std::optional<int64_t>& before,
                              const std::optional<int64_t>& after) {
  if (!before || !after) return std::nullopt;
  return *after - *before;
}

TargetCounters growth(const TargetCounters& before, const TargetCounters& after) {
  return {growth(before.prompt_tokens, after.prompt_tokens),
          growth(before.cached_tokens, after.cached_tokens),
          growth(before.joined_tokens, after.joined_tokens),
          growth(before.kv_tokens_read, after.kv_tokens_read),
          growth(before.blocks_copied, after.blocks_copied),
          growth(before.evictions, after.evictions),
          growth(before.preemptions, after.preemptions)};
}

bool is_good(const RequestRecord& record, const GoodputTargets& targets) {
  const auto within = [](double value, const std::optional<double>& limit) {
    return !limit || value <= *limit;
  };
  return within(record.ttft_ms, targets.ttft_ms) &&
         within(record.tpot_ms().value_or(0), targets.tpot_ms) &&
         within(record.e2el_ms, targets.e2el_ms);
}

/// Tokens of the best whole second after the first start. The pieces of an answer share its tokens
/// evenly.
double best_second(std::span<const RequestRecord> records) {
  std::vector<double> seconds;
  for (const RequestRecord& record : records) {
    if (!record.ok() || !record.has_first_token) continue;
    const double tokens =
        static_cast<double>(record.output_tokens) / static_cast<double>(record.itl_ms.size() + 1);
    double at_ms = record.started_ms + record.ttft_ms;
    for (size_t piece = 0; piece <= record.itl_ms.size(); ++piece) {
      const auto second = static_cast<size_t>(std::max(at_ms, 0.0) / 1e3);
      if (second >= seconds.size()) seconds.resize(second + 1, 0);
      seconds[second] += tokens;
      if (piece < record.itl_ms.size()) at_ms += record.itl_ms[piece];
    }
  }
  return seconds.empty() ? 0 : *std::ranges::max_element(seconds);
}

int64_t most_at_once(std::span<const RequestRecord> records) {
  std::vector<std::pair<double, int>> changes;  // an end comes before a start of the same time
  for (const RequestRecord& record : records) {
    if (!record.ok()) continue;
    changes.emplace_back(record.started_ms, 1);
    changes.emplace_back(record.started_ms + record.e2el_ms, -1);
  }
  std::ranges::sort(changes);
  int64_t now = 0;
  int64_t most = 0;
  for (const auto& [at, change] : changes) most = std::max(most, now += change);
  return most;
}

void summarize_scores(std::span<const RequestRecord> records, ServeMetrics& metrics) {
  AnswerScores sum;
  for (const RequestRecord& record : records) {
    if (!record.ok() || !record.scores) continue;
    ++metrics.scored;
    sum.exact_match += record.scores->exact_match;
    sum.contains_match += record.scores->contains_match;
    sum.f1 += record.scores->f1;
    sum.rouge_l += record.scores->rouge_l;
    sum.score += record.scores->score;
  }
  if (metrics.scored == 0) return;
  const auto n = static_cast<double>(metrics.scored);
  metrics.scores = {sum.exact_match / n, sum.contains_match / n, sum.f1 / n, sum.rouge_l / n,
                    sum.score / n};
}

void summarize_reuse(std::span<const RequestRecord> records, ServeMetrics& metrics) {
  const TargetCounters& counters = metrics.counters;
  int64_t prompt = 0;
  int64_t cached = 0;
  if (counters.prompt_tokens && counters.cached_tokens) {
    prompt = *counters.prompt_tokens;
    cached = *counters.cached_tokens;
  } else {
    bool told = false;
    for (const RequestRecord& record : records) {
      if (!record.ok() || !record.cached_tokens) continue;
      told = true;
      prompt += record.prompt_tokens;
      cached += *record.cached_tokens;
    }
    if (!told) return;
  }
  metrics.cached_tokens = cached;
  if (prompt > 0) metrics.hit_ratio = static_cast<double>(cached) / static_cast<double>(prompt);
}

void count_outcomes(std::span<const RequestRecord> records, ServeMetrics& metrics) {
  for (const RequestRecord& record : records) {
    if (record.ok()) {
      ++metrics.completed;
      metrics.total_input_tokens += record.prompt_tokens;
      metrics.total_output_tokens += record.output_tokens;
    } else if (record.failure == Failure::kCancelled) {
      ++metrics.cancelled;
    } else {
      ++metrics.failed;
      ++metrics.failures[std::string(failure_name(record.failure))];
    }
  }
}

void summarize_times(std::span<const RequestRecord> records, ServeMetrics& metrics) {
  std::vector<double> ttfts;
  std::vector<double> tpots;
  std::vector<double> itls;
  std::vector<double> e2els;
  for (const RequestRecord& record : records) {
    if (!record.ok()) continue;
    if (record.has_first_token) ttfts.push_back(record.ttft_ms);
    if (const auto tpot = record.tpot_ms()) tpots.push_back(*tpot);
    itls.insert(itls.end(), record.itl_ms.begin(), record.itl_ms.end());
    e2els.push_back(record.e2el_ms);
  }
  metrics.ttft_ms = summarize_latencies(ttfts);
  metrics.tpot_ms = summarize_latencies(tpots);
  metrics.itl_ms = summarize_latencies(itls);
  metrics.e2el_ms = summarize_latencies(e2els);
}

void add_latencies(const std::string& name, const LatencySummary& summary, Json& json) {
  json["mean_" + name + "_ms"] = summary.mean;
  json["median_" + name + "_ms"] = summary.median;
  json["std_" + name + "_ms"] = summary.std;
  json["p90_" + name + "_ms"] = summary.p90;
  json["p99_" + name + "_ms"] = summary.p99;
}

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

void add_reuse(const ServeMetrics& metrics, Json& json) {
  json["hit_ratio"] = or_null(metrics.hit_ratio);
  json["cached_tokens"] = or_null(metrics.cached_tokens);
  json["joined_tokens"] = or_null(metrics.counters.joined_tokens);
  json["kv_tokens_read"] = or_null(metrics.counters.kv_tokens_read);
  json["blocks_copied"] = or_null(metrics.counters.blocks_copied);
  json["evictions"] = or_null(metrics.counters.evictions);
  json["preemptions"] = or_null(metrics.counters.preemptions);
  const auto& peak = metrics.peak_kv;
  json["peak_kv_blocks_in_use"] = peak ? Json(peak->blocks_in_use) : Json();
  json["peak_kv_blocks"] = peak ? Json(peak->blocks_occupied) : Json();
  json["total_kv_blocks"] = peak ? Json(peak->total_blocks) : Json();
  const bool has_bytes = peak && peak->bytes_per_block > 0;
  json["peak_kv_bytes_in_use"] =
      has_bytes ? Json(peak->blocks_in_use * peak->bytes_per_block) : Json();
  json["peak_kv_bytes"] = has_bytes ? Json(peak->blocks_occupied * peak->bytes_per_block) : Json();
}

}  // namespace

std::string_view failure_name(Failure failure) {
  switch (failure) {
    case Failure::kNone:
      return "";
    case Failure::kRefused:
      return "refused";
    case Failure::kConnect:
      return "connect";
    case Failure::kStalled:
      return "stalled";
    case Failure::kClosed:
      return "closed";
    case Failure::kError:
      return "error";
    case Failure::kCancelled:
      return "cancelled";
  }
  return "";
}

std::optional<double> RequestRecord::tpot_ms() const {
  if (!has_first_token || output_tokens < 2) return std::nullopt;
  return (e2el_ms - ttft_ms) / static_cast<double>(output_tokens - 1);
}

LatencySummary summarize_latencies(std::span<const double> values_ms) {
  LatencySummary summary;
  if (values_ms.empty()) return summary;
  summary.mean = cli::mean(values_ms);
  summary.median = cli::median(values_ms);
  summary.p90 = cli::percentile(values_ms, 90);
  summary.p99 = cli::percentile(values_ms, 99);
  double squares = 0;
  for (const double value : values_ms) squares += (value - summary.mean) * (value - summary.mean);
  summary.std = std::sqrt(squares / static_cast<double>(values_ms.size()));
  return summary;
}

ServeMetrics summarize(std::span<const RequestRecord> records, const RunFacts& facts) {
  ServeMetrics metrics;
  metrics.duration_s = facts.duration_s;
  metrics.counters = growth(facts.before, facts.after);
  metrics.peak_kv = facts.peak_kv;
  count_outcomes(records, metrics);
  const auto per_second = [&](int64_t count) {
    return facts.duration_s > 0 ? static_cast<double>(count) / facts.duration_s : 0;
  };
  metrics.request_throughput = per_second(metrics.completed);
  metrics.input_throughput = per_second(metrics.total_input_tokens);
  metrics.output_throughput = per_second(metrics.total_output_tokens);
  metrics.total_token_throughput =
      per_second(metrics.total_input_tokens + metrics.total_output_tokens);
  if (facts.goodput.any()) {
    metrics.request_goodput =
        per_second(std::ranges::count_if(records, [&](const RequestRecord& record) {
          return record.ok() && is_good(record, facts.goodput);
        }));
  }
  metrics.max_output_tokens_per_s = best_second(records);
  metrics.max_concurrent_requests = most_at_once(records);
  summarize_times(records, metrics);
  summarize_reuse(records, metrics);
  summarize_scores(records, metrics);
  return metrics;
}

Json metrics_json(const ServeMetrics& metrics) {
  Json json = {{"duration", metrics.duration_s},
               {"completed", metrics.completed},
               {"failed", metrics.failed},
               {"total_input_tokens", metrics.total_input_tokens},
               {"total_output_tokens", metrics.total_output_tokens},
               {"request_throughput", metrics.request_throughput},
               {"request_goodput", or_null(metrics.request_goodput)},
               {"output_throughput", metrics.output_throughput},
               {"total_token_throughput", metrics.total_token_throughput},
               {"max_output_tokens_per_s", metrics.max_output_tokens_per_s},
               {"max_concurrent_requests", metrics.max_concurrent_requests}};
  add_latencies("ttft", metrics.ttft_ms, json);
  add_latencies("tpot", metrics.tpot_ms, json);
  add_latencies("itl", metrics.itl_ms, json);
  add_latencies("e2el", metrics.e2el_ms, json);
  json["input_throughput"] = metrics.input_throughput;
  json["cancelled"] = metrics.cancelled;
  for (const Failure failure : {Failure::kRefused, Failure::kConnect, Failure::kStalled,
                                Failure::kClosed, Failure::kError}) {
    const auto it = metrics.failures.find(std::string(failure_name(failure)));
    json["failed_" + std::string(failure_name(failure))] =
        it == metrics.failures.end() ? 0 : it->second;
  }
  add_reuse(metrics, json);
  json["scored"] = metrics.scored;
  const auto& scores = metrics.scores;
  json["exact_match"] = scores ? Json(scores->exact_match) : Json();
  json["contains_match"] = scores ? Json(scores->contains_match) : Json();
  json["f1"] = scores ? Json(scores->f1) : Json();
  json["rouge_l"] = scores ? Json(scores->rouge_l) : Json();
  json["score"] = scores ? Json(scores->score) : Json();
  return json;
}

}  // namespace anyslot::bench
