#pragma once

#include <mutex>
#include <set>
#include <string>
#include <thread>

namespace anyslot::cli {

/// Ends the program on Ctrl-C, SIGTERM, SIGHUP or SIGQUIT with the status 128 + signal (130, 143,
/// 129, 131), after removing the temporary files that were announced. A signal that the caller's
/// shell told the program to ignore stays ignored. One per program, made before any other thread.
class Interrupt {
 public:
  Interrupt();
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  void add_temporary(const std::string& path);
  void remove_temporary(const std::string& path);

 private:
  void wait_for_signal();

  std::mutex mutex_;
  std::set<std::string> temporaries_;
  int signal_fd_ = -1;
  int stop_fd_ = -1;
  std::thread thread_;
};

}  // namespace anyslot::cli
