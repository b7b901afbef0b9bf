#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "anyslot/status.h"
#include "metrics.h"
#include "target.h"
#include "workload.h"

namespace anyslot::bench {

struct ServeOptions {
  WorkloadOptions workload;
  ArrivalOptions arrivals;
  int num_prompts = 1000;
  int max_concurrency = 0;       // requests in flight; 0: no limit
  int num_warmups = 0;           // requests before the measured ones, from the workload's begin
  double timeout_seconds = 300;  // without anything from the target: the request has stalled
  GoodputTargets goodput;
  uint64_t seed = 0;
};

/// How a run goes on, and the way to stop it.
class Progress {
 public:
  /// `update` is called on the thread of run_serve; it may be empty.
  explicit Progress(std::function<void(int64_t done, int64_t total)> update = {})
      : update_(std::move(update)) {}

  void update(int64_t done, int64_t total) {
    if (update_) update_(done, total);
  }
  /// From any thread: nothing more starts, what is in flight is cancelled, and what was measured is
  /// reported.
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  std::function<void(int64_t, int64_t)> update_;
  std::atomic<bool> stopped_ = false;
};

struct ServeResult {
  ServeMetrics metrics;
  std::vector<RequestRecord> records;  // of the requests that were started, in the workload's order
  bool stopped = false;                // before all requests had ended
};

/// Makes the workload, runs the warm-up, then starts each request at its time and waits for all.
/// Requests that fail are counted in the result; the call itself fails only when the workload
/// cannot be made.
Expected<ServeResult> run_serve(const ServeOptions& options, Target& target, Progress& progress);

}  // namespace anyslot::bench
