#pragma once

#include <functional>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "anyslot/status.h"

namespace anyslot::cli {

/// Ends the program on Ctrl-C, SIGTERM, SIGHUP or SIGQUIT with the status 128 + signal (130, 143,
/// 129, 131), after removing the temporary files that were announced and running what was to be
/// run at the end. A signal that the caller's
/// shell told the program to ignore stays ignored. One per program, made before any other thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void add_temporary(const std::string& path);
  void remove_temporary(const std::string& path);

  /// `work` runs once, on any thread, before the program ends: in finish() or at a signal.
  void at_end(std::function<Status()> work);
  /// The first signal calls `stop`, on a thread of its own, instead of ending the program; a second
  /// one ends it. Empty: the first one does again, unless it has come.
  void at_first_signal(std::function<void()> stop);
  /// To be called when the program has done its work: runs what at_end() was given. The first
  /// failure of it.
  Status finish();

 private:
  void wait_for_signal();
  bool stop_instead();

  std::mutex mutex_;
  std::set<std::string> temporaries_;
  std::vector<std::function<Status()>> at_end_;
  std::function<void()> stop_;
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace anyslot::cli
