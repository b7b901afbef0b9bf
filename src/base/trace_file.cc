#include "base/trace_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>

namespace anyslot {

namespace {

constexpr std::string_view kHead =
    "[\n"
    R"({"name":"process_name","ph":"M","pid":1,"tid":1,"args":{"name":"anyslot"}},)"
    "\n"
    R"({"name":"thread_name","ph":"M","pid":1,"tid":1,"args":{"name":"engine"}})";
constexpr std::string_view kTail = "\n]\n";

void append_number(int64_t value, std::string& text) {
  char digits[24];
  const auto result = std::to_chars(digits, digits + sizeof digits, value);
  text.append(digits, result.ptr);
}

/// The format counts in microseconds.
void append_microseconds(int64_t nanoseconds, std::string& text) {
  append_number(nanoseconds / 1000, text);
  const auto rest = static_cast<int>(nanoseconds % 1000);
  const char digits[] = {'.', static_cast<char>('0' + rest / 100),
                         static_cast<char>('0' + rest / 10 % 10),
                         static_cast<char>('0' + rest % 10)};
  text.append(digits, sizeof digits);
}

void append_event(const TraceEvent& event, std::string& text) {
  text += ",\n{\"name\":\"";
  text += event.name;
  text += R"(","ph":"X","pid":1,"tid":1,"ts":)";
  append_microseconds(event.begin, text);
  text += ",\"dur\":";
  append_microseconds(event.end - event.begin, text);
  text += ",\"args\":{";
  for (size_t i = 0; i < event.arguments.size() && event.arguments[i].name != nullptr; ++i) {
    text += i == 0 ? "\"" : ",\"";
    text += event.arguments[i].name;
    text += "\":";
    append_number(event.arguments[i].value, text);
  }
  text += "}}";
}

}  // namespace

Expected<std::shared_ptr<TraceFile>> TraceFile::create(const std::string& path) {
  const auto cannot_write = [&path](const std::string& reason) {
    return invalid_argument("cannot write the trace " + path + ": " + reason);
  };
  // Not to wait for the reader of a pipe, which is then refused.
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NONBLOCK, 0666);
  if (fd < 0) return cannot_write(std::strerror(errno));
  struct stat info {};
  if (::fstat(fd, &info) != 0 || S_ISFIFO(info.st_mode) || S_ISSOCK(info.st_mode)) {
    ::close(fd);
    return cannot_write("it is a pipe; name a file");
  }
  return std::shared_ptr<TraceFile>(new TraceFile(fd, path));
}

TraceFile::TraceFile(int fd, std::string path) : path_(std::move(path)), fd_(fd), text_(kHead) {
  pending_.reserve(kMaxPending);
}

TraceFile::~TraceFile() { static_cast<void>(finish()); }

void TraceFile::add(const TraceEvent& event) {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0 || !status_.ok()) return;
  if (pending_.size() == kMaxPending) write_pending();
  pending_.push_back(event);
}

void TraceFile::flush(size_t least) {
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0 && !pending_.empty() && pending_.size() >= least) write_pending();
}

void TraceFile::write_pending() {
  for (const TraceEvent& event : pending_) append_event(event, text_);
  pending_.clear();
  write(text_);
  if (status_.ok()) whole_bytes_ += static_cast<int64_t>(text_.size());
  text_.clear();
}

void TraceFile::write(std::string_view text) {
  while (status_.ok() && !text.empty()) {
    const ssize_t written = ::write(fd_, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) {
      status_ = internal_error("cannot write the trace " + path_ + ": " + std::strerror(errno) +
                               "; it ends early");
      return;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
}

void TraceFile::close_array() {
  if (status_.ok()) return write(kTail);
  // Cutting off the unfinished event makes room for the end. A device takes neither.
  const std::string_view end = whole_bytes_ == 0 ? std::string_view("[]\n") : kTail;
  if (::ftruncate(fd_, whole_bytes_) != 0 || ::lseek(fd_, whole_bytes_, SEEK_SET) < 0) return;
  [[maybe_unused]] const ssize_t written = ::write(fd_, end.data(), end.size());
}

Status TraceFile::finish() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return status_;
  write_pending();
  close_array();
  if (::close(std::exchange(fd_, -1)) != 0 && status_.ok()) {
    status_ = internal_error("cannot write the trace " + path_ + ": " + std::strerror(errno));
  }
  return status_;
}

void TraceSpan::set(std::initializer_list<TraceEvent::Argument> arguments) {
  event_.arguments.fill({});
  const size_t count = std::min(arguments.size(), TraceEvent::kMaxArguments);
  std::copy_n(arguments.begin(), count, event_.arguments.begin());
}

}  // namespace anyslot
