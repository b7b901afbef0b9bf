#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "scores.h"

namespace anyslot::bench {

/// What ended a request that has no whole answer.
enum class Failure : uint8_t {
  kNone,
  kRefused,    // the target answered with an error before the first token
  kConnect,    // no connection
  kStalled,    // nothing came for the time limit
  kClosed,     // the stream ended without its proper end
  kError,      // an error in a stream that had begun, or an answer that is none
  kCancelled,  // the run was stopped
};

/// "refused", "connect", "stalled", ...; "" for kNone.
std::string_view failure_name(Failure failure);

/// What was seen of one request. Times are ms; `started_ms` counts from the run's begin.
struct RequestRecord {
  size_t index = 0;  // in the workload
  double started_ms = 0;
  bool has_first_token = false;
  double ttft_ms = 0;          // from the start to the first token
  double e2el_ms = 0;          // from the start to the end of the answer
  std::vector<double> itl_ms;  // gaps between the pieces of the answer, one less than pieces
  int64_t prompt_tokens = 0;   // as the target counts them
  std::optional<int64_t> cached_tokens;  // of the prompt; unset where the target does not say
  int64_t output_tokens = 0;
  Failure failure = Failure::kNone;
  std::string error;                   // why, for people
  std::string text;                    // the answer
  std::optional<AnswerScores> scores;  // when right answers are known

  bool ok() const { return failure == Failure::kNone; }
  /// ms per output token after the first; none for an answer of fewer than two tokens.
  std::optional<double> tpot_ms() const;
};

/// Of latencies in ms. Percentiles are interpolated and `std` is that of a population, as NumPy's
/// defaults. All 0 for no values.
struct LatencySummary {
  double mean = 0;
  double median = 0;
  double std = 0;
  double p90 = 0;
  double p99 = 0;
};

LatencySummary summarize_latencies(std::span<const double> values_ms);

/// Limits in ms that make a request good; unset: any value will do.
struct GoodputTargets {
  std::optional<double> ttft_ms;
  std::optional<double> tpot_ms;
  std::optional<double> e2el_ms;

  bool any() const { return ttft_ms || tpot_ms || e2el_ms; }
};

/// Counters of a target that only grow. Unset: the target does not tell.
struct TargetCounters {
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> cached_tokens;   // prompt tokens whose KV was reused
  std::optional<int64_t> joined_tokens;   // of documents that were being encoded for another one
  std::optional<int64_t> kv_tokens_read;  // distinct KV tokens read by attention, summed over steps
  std::optional<int64_t> blocks_copied;   // private copies of document blocks (method block)
  std::optional<int64_t> evictions;
  std::optional<int64_t> preemptions;
};

/// How full the KV pool was at its fullest.
struct PeakKv {
  int64_t blocks_in_use = 0;    // referenced by running requests
  int64_t blocks_occupied = 0;  // in use or cached
  int64_t total_blocks = 0;
  int64_t bytes_per_block = 0;  // 0: unknown
};

/// The result of a run in numbers. Throughputs are per second of `duration_s`, of answered requests
/// only.
struct ServeMetrics {
  double duration_s = 0;  // from the first start to the last end
  int64_t completed = 0;
  int64_t failed = 0;  // cancelled ones are counted apart
  int64_t cancelled = 0;
  std::map<std::string, int64_t> failures;  // failure_name -> requests
  int64_t total_input_tokens = 0;
  int64_t total_output_tokens = 0;
  double request_throughput = 0;
  std::optional<double> request_goodput;  // good requests per second; unset without targets
  double input_throughput = 0;
  double output_throughput = 0;
  double total_token_throughput = 0;
  double max_output_tokens_per_s = 0;  // in the best whole second
  int64_t max_concurrent_requests = 0;
  LatencySummary ttft_ms;
  LatencySummary tpot_ms;  // over requests of at least two tokens
  LatencySummary itl_ms;   // over all gaps of all requests
  LatencySummary e2el_ms;

  /// Reused prompt tokens / prompt tokens: from the target's counters before and after, else from
  /// the usage of the requests; unset where nobody tells.
  std::optional<double> hit_ratio;
  std::optional<int64_t> cached_tokens;
  TargetCounters counters;  // what they grew by during the run
  std::optional<PeakKv> peak_kv;

  int64_t scored = 0;                  // answered requests whose right answers are known
  std::optional<AnswerScores> scores;  // means over them
};

/// What a run is summed up from beside its requests.
struct RunFacts {
  double duration_s = 0;
  GoodputTargets goodput;
  TargetCounters before;
  TargetCounters after;
  std::optional<PeakKv> peak_kv;
};

ServeMetrics summarize(std::span<const RequestRecord> records, const RunFacts& facts);

/// The metrics under the names of `vllm bench serve`'s result file (completed, total_input_tokens,
/// request_throughput, mean_ttft_ms, p99_itl_ms, ...), then ours (hit_ratio, exact_match, ...).
nlohmann::ordered_json metrics_json(const ServeMetrics& metrics);

}  // namespace anyslot::bench
