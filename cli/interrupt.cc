#include "interrupt.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <csignal>
#include <utility>

namespace anyslot::cli {

Interrupt::Interrupt() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    struct sigaction action {};
    if (sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN) continue;
    sigaddset(&signals, signal);
  }
  signal_fd_ = ::signalfd(-1, &signals, SFD_CLOEXEC);
  stop_fd_ = ::eventfd(0, EFD_CLOEXEC);
  if (signal_fd_ < 0 || stop_fd_ < 0) return;  // signals then end the program at once
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  thread_ = std::thread([this] { wait_for_signal(); });
}

Interrupt::~Interrupt() {
  if (thread_.joinable()) {
    const uint64_t one = 1;
    if (::write(stop_fd_, &one, sizeof one) == sizeof one) thread_.join();
  }
  if (signal_fd_ >= 0) ::close(signal_fd_);
  if (stop_fd_ >= 0) ::close(stop_fd_);
}

void Interrupt::add_temporary(const std::string& path) {
  const std::lock_guard lock(mutex_);
  temporaries_.insert(path);
}

void Interrupt::remove_temporary(const std::string& path) {
  const std::lock_guard lock(mutex_);
  temporaries_.erase(path);
}

void Interrupt::at_end(std::function<Status()> work) {
  const std::lock_guard lock(mutex_);
  at_end_.push_back(std::move(work));
}

void Interrupt::at_first_signal(std::function<void()> stop) {
  const std::lock_guard lock(mutex_);
  stop_ = std::move(stop);
}

Status Interrupt::finish() {
  const std::lock_guard lock(mutex_);
  Status first;
  for (const auto& work : std::exchange(at_end_, {})) {
    Status status = work();
    if (first.ok()) first = std::move(status);
  }
  return first;
}

bool Interrupt::stop_instead() {
  const std::lock_guard lock(mutex_);
  if (!stop_) return false;
  std::exchange(stop_, {})();
  return true;
}

void Interrupt::wait_for_signal() {
  signalfd_siginfo info{};
  do {
    pollfd waiting[] = {{signal_fd_, POLLIN, 0}, {stop_fd_, POLLIN, 0}};
    while (::poll(waiting, 2, -1) < 0) {
    }
    if ((waiting[0].revents & POLLIN) == 0) return;
    if (::read(signal_fd_, &info, sizeof info) != sizeof info) return;
  } while (stop_instead());
  static_cast<void>(finish());
  const std::lock_guard lock(mutex_);
  for (const std::string& path : temporaries_) ::unlink(path.c_str());
  constexpr std::string_view kMessage = "\nanyslot: interrupted\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, kMessage.data(), kMessage.size());
  ::_exit(128 + static_cast<int>(info.ssi_signo));
}

}  // namespace anyslot::cli
