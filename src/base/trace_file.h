#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"

namespace anyslot {

/// What was done from `begin` to `end`, in ns of TraceFile::now().
struct TraceEvent {
  struct Argument {
    const char* name = nullptr;
    int64_t value = 0;
  };
  static constexpr size_t kMaxArguments = 6;

  const char* name = nullptr;  // like the arguments' names: a literal that JSON need not escape
  int64_t begin = 0;
  int64_t end = 0;
  std::array<Argument, kMaxArguments> arguments{};  // up to the first one without a name
};

/// A trace for chrome://tracing and Perfetto: a JSON array of complete trace events. Events gather
/// in memory of a fixed size and are written when asked for; so a program that is killed leaves a
/// file without its closing bracket, which both viewers read. Thread-safe.
class TraceFile {
 public:
  static constexpr size_t kMaxPending = 16384;  // events in memory

  /// Creates or empties the file. Fails with kInvalidArgument, naming the path, when it cannot be
  /// written or is a pipe, which could make the writer wait.
  static Expected<std::shared_ptr<TraceFile>> create(const std::string& path);
  ~TraceFile();
  TraceFile(const TraceFile&) = delete;
  TraceFile& operator=(const TraceFile&) = delete;

  int64_t now() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now() - start_).count();
  }

  /// Keeps an event; writes only when kMaxPending are kept already.
  void add(const TraceEvent& event);
  /// Writes the events once at least `least` are kept. To be called where nothing is measured.
  void flush(size_t least);
  /// Writes everything and closes the file; later events are dropped. Fails with kInternal when
  /// something could not be written: the file then holds, as whole JSON, what was written before.
  Status finish();

 private:
  using Clock = std::chrono::steady_clock;

  TraceFile(int fd, std::string path);
  void write_pending();
  void write(std::string_view text);
  void close_array();

  const Clock::time_point start_ = Clock::now();
  const std::string path_;
  std::mutex mutex_;
  int fd_;  // -1: closed
  std::vector<TraceEvent> pending_;
  std::string text_;         // of the events that are being written
  int64_t whole_bytes_ = 0;  // of the file, up to the last event that was written
  Status status_;
};

/// Adds an event for its own lifetime; does nothing without a file.
class TraceSpan {
 public:
  TraceSpan(TraceFile* file, const char* name,
            std::initializer_list<TraceEvent::Argument> arguments = {})
      : file_(file) {
    if (file_ == nullptr) return;
    event_.name = name;
    set(arguments);
    event_.begin = file_->now();
  }
  ~TraceSpan() {
    if (file_ == nullptr) return;
    event_.end = file_->now();
    file_->add(event_);
  }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  /// Replaces the arguments, of which there are at most TraceEvent::kMaxArguments.
  void set(std::initializer_list<TraceEvent::Argument> arguments);
  /// No event after all.
  void drop() { file_ = nullptr; }

 private:
  TraceFile* file_;
  TraceEvent event_;
};

}  // namespace anyslot
