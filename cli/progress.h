#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace anyslot::cli {

/// A bar on standard error with the time left, drawn only when that is a terminal. Not thread-safe.
class ProgressBar {
 public:
  /// `what` names the work, e.g. "answering".
  ProgressBar(std::string what, int64_t total);
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void update(int64_t done);
  /// Wipes the bar, so that other lines can be printed; the next update draws it again.
  void clear();

 private:
  using Clock = std::chrono::steady_clock;

  std::string what_;
  int64_t total_;
  bool enabled_;
  bool drawn_ = false;
  Clock::time_point begin_;
  Clock::time_point last_draw_;
};

/// The text of a bar: "answering [#####.....] 50/100, 12 s left".
std::string progress_text(const std::string& what, int64_t done, int64_t total,
                          double elapsed_seconds);

}  // namespace anyslot::cli
