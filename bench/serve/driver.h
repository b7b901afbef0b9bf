#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "serve.h"

namespace anyslot::bench {

/// How requests are sent.
struct DriverOptions {
  int max_concurrency = 0;  // 0: no limit
  double timeout_seconds = 300;
  bool tells_progress = true;
};

/// Sends the requests of a workload at their times and records what comes back. To be used once.
class Driver {
 public:
  /// `start_seconds`: one per request; unset: after the request that it follows. All must outlive
  /// the driver.
  Driver(boost::asio::io_context& loop, Target& target, std::vector<WorkloadRequest> requests,
         std::vector<std::optional<double>> start_seconds, const DriverOptions& options,
         Progress& progress);

  /// Runs the loop until every request has ended, or the progress was stopped.
  void run();

  bool stopped() const { return stopped_; }
  double duration_seconds() const;
  /// Of the requests that were started, by index.
  std::vector<RequestRecord> take_records();

 private:
  struct Running {
    std::unique_ptr<Flight> flight;
    Clock::time_point started;
    Clock::time_point latest_output;  // of the answer's pieces
    Clock::time_point latest_sign;    // of life
    size_t pieces = 0;
    RequestRecord record;
  };

  void schedule();
  void start_due();
  void start(size_t index);
  void take(size_t index, const TargetEvent& event);
  void finish(size_t index, Failure failure, const std::string& error);
  void release_followers(size_t index);
  void complete_conversation(size_t index);
  void tell_progress();
  void tick();
  void check_limits();
  void cancel_all();
  bool done() const { return ended_ == requests_.size(); }

  boost::asio::io_context& loop_;
  Target& target_;
  std::vector<WorkloadRequest> requests_;
  std::vector<std::optional<double>> start_seconds_;
  DriverOptions options_;
  Progress& progress_;

  boost::asio::steady_timer arrival_timer_;
  boost::asio::steady_timer tick_timer_;
  std::vector<size_t> arrivals_;  // in the order of their times
  size_t next_arrival_ = 0;
  std::deque<size_t> due_;  // have arrived, wait for others to end
  std::vector<std::optional<Running>> running_;
  std::vector<std::optional<RequestRecord>> records_;
  std::vector<std::vector<size_t>> followers_;
  size_t in_flight_ = 0;
  size_t ended_ = 0;
  bool stopped_ = false;
  Clock::time_point begin_;
  std::optional<Clock::time_point> first_start_;
  Clock::time_point last_end_;
};

}  // namespace anyslot::bench
