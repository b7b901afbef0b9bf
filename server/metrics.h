#pragma once

#include <memory>
#include <string>

#include "anyslot/engine.h"

namespace anyslot::server {

enum class Outcome { kOk, kError, kAborted };

/// What /metrics shows, in Prometheus's text format. Thread-safe.
class Metrics {
 public:
  /// `engine` must outlive this.
  explicit Metrics(const Engine& engine);
  ~Metrics();
  Metrics(const Metrics&) = delete;
  Metrics& operator=(const Metrics&) = delete;

  /// Each takes seconds.
  void observe_first_token(double seconds);
  void observe_inter_token(double seconds);
  void observe_queue(double seconds);
  void observe_request(double seconds);
  void count_request(Outcome outcome);
  void count_reply(int status);

  /// Counters of the engine are read for it.
  std::string text() const;

 private:
  struct Families;
  std::unique_ptr<Families> families_;
};

}  // namespace anyslot::server
