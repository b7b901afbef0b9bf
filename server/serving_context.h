#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <utility>

#include "active_requests.h"
#include "anyslot/engine.h"
#include "gate.h"
#include "metrics.h"
#include "request_rules.h"
#include "server_limits.h"

namespace anyslot::server {

using Task = std::function<void()>;
using Executor = std::function<void(Task)>;  // runs a task soon; from any thread

/// Now, in seconds since 1970.
inline int64_t unix_seconds() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

/// What the handlers share. It outlives them.
struct ServingContext {
  Engine& engine;
  RequestRules rules;
  Limits limits;
  Executor io;       // the thread of all connections
  Executor workers;  // for what takes long: parsing, tokenizing, waiting for the engine
  ActiveRequests active;
  Metrics metrics;
  int64_t started = 0;  // seconds since 1970
  Gate side_gate{2};

  /// For what is no answer: to the workers, but leaves some of them to those who ask for one.
  void aside(Task work) {
    side_gate.enter([this, work = std::move(work)](const Gate::Pass& pass) {
      workers([work, pass] { work(); });
    });
  }
};

}  // namespace anyslot::server
