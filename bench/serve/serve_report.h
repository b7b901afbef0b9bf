#pragma once

#include <string>
#include <vector>

#include "bench/report.h"
#include "serve.h"

namespace anyslot::bench {

/// What a run is called in a report.
struct RunName {
  std::string method;  // "lazy", ..., or "" for a server's own way
  std::string model_id;
  std::string label;  // the user's, may be empty
  std::string workload;
};

/// A run and what came of it.
struct NamedRun {
  RunName name;
  ServeOptions options;
  ServeResult result;
};

/// A row per run. Names of columns are those of `vllm bench serve`'s result file, ours beside them;
/// the table shows a few, less those that no run has. `detailed` adds lists with an entry per
/// request, in JSON only.
Report serve_report(const Report::Facts& facts, const std::vector<NamedRun>& runs, bool detailed);

/// A table of latencies in ms for people: a line per run and TTFT, TPOT, ITL, E2EL, with mean,
/// median, standard deviation, p90 and p99.
std::string latency_table(const std::vector<NamedRun>& runs);

/// "2 of 100 requests failed: 1 closed, 1 stalled; the first: ..." Empty when none has.
std::string failure_text(const ServeResult& result);

}  // namespace anyslot::bench
