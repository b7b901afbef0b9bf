#include "output_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

namespace anyslot::cli {
namespace {

constexpr std::string_view kStandardOutput = "standard output";

Status cannot_write(std::string_view name, int error) {
  return invalid_argument(fmt::format("cannot write {}: {}", name, std::strerror(error)));
}

/// Creates a file beside `target` whose name nobody else uses; -1 and errno on failure.
int create_beside(const std::string& target, std::string& temporary) {
  for (int attempt = 0; attempt < 100; ++attempt) {
    temporary = fmt::format("{}.{}-{}.tmp", target, ::getpid(), attempt);
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0 || errno != EEXIST) return fd;
  }
  return -1;
}

/// Follows links to the file that `path` means, which need not exist.
std::string follow_links(const std::string& path) {
  constexpr int kMaxLinks = 40;
  std::filesystem::path target = path;
  std::error_code error;
  for (int links = 0; links < kMaxLinks && std::filesystem::is_symlink(target, error); ++links) {
    const std::filesystem::path next = std::filesystem::read_symlink(target, error);
    if (error) break;
    target = next.is_absolute() ? next : target.parent_path() / next;
  }
  return target.string();
}

bool is_open_as(int fd, const struct stat& file) {
  struct stat open_file {};
  return ::fstat(fd, &open_file) == 0 && open_file.st_dev == file.st_dev &&
         open_file.st_ino == file.st_ino;
}

}  // namespace

Status write_all(int fd, std::string_view bytes, std::string_view name) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0) {
      if (errno == EINTR) continue;
      return internal_error(fmt::format("cannot write {}: {}", name, std::strerror(errno)));
    }
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return {};
}

Status print(std::string_view text) { return write_all(STDOUT_FILENO, text, kStandardOutput); }

Expected<OutputFile> OutputFile::open(const std::string& path, Interrupt& interrupt) {
  if (path == "-") {
    return OutputFile(STDOUT_FILENO, std::string(kStandardOutput), {}, {}, interrupt);
  }
  if (path.empty()) return invalid_argument("cannot write an output without a name");
  struct stat info {};
  const bool exists = ::stat(path.c_str(), &info) == 0;
  if (!exists && errno != ENOENT) return cannot_write(path, errno);
  if (exists) {
    if (S_ISDIR(info.st_mode)) return cannot_write(path, EISDIR);
    if (::access(path.c_str(), W_OK) != 0) return cannot_write(path, errno);
    if (is_open_as(STDOUT_FILENO, info)) {  // /dev/stdout: a new file would not be the open one
      return OutputFile(STDOUT_FILENO, path, {}, {}, interrupt);
    }
    if (!S_ISREG(info.st_mode)) {
      const int fd = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
      if (fd < 0) return cannot_write(path, errno);
      return OutputFile(fd, path, {}, {}, interrupt);
    }
  }
  std::string target = follow_links(path);  // a link keeps pointing at the file that is replaced
  std::string temporary;
  const int fd = create_beside(target, temporary);
  if (fd < 0) return cannot_write(path, errno);
  interrupt.add_temporary(temporary);
  OutputFile file(fd, path, std::move(target), std::move(temporary), interrupt);
  if (exists && ::fchmod(fd, info.st_mode & 07777) != 0) return cannot_write(path, errno);
  return file;
}

OutputFile::OutputFile(int fd, std::string name, std::string target, std::string temporary,
                       Interrupt& interrupt)
    : fd_(fd),
      name_(std::move(name)),
      target_(std::move(target)),
      temporary_(std::move(temporary)),
      interrupt_(&interrupt) {}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)),
      name_(std::move(other.name_)),
      target_(std::move(other.target_)),
      temporary_(std::exchange(other.temporary_, {})),
      interrupt_(other.interrupt_) {}

OutputFile::~OutputFile() { discard(); }

void OutputFile::discard() {
  if (fd_ >= 0 && !is_standard_output()) ::close(fd_);
  fd_ = -1;
  if (temporary_.empty()) return;
  ::unlink(temporary_.c_str());
  interrupt_->remove_temporary(temporary_);
  temporary_.clear();
}

bool OutputFile::is_standard_output() const { return fd_ == STDOUT_FILENO; }

Status OutputFile::write(std::string_view bytes) { return write_all(fd_, bytes, name_); }

Status OutputFile::commit() {
  Status status;
  // Some file systems report a full disk only here.
  const bool flushed = temporary_.empty() || ::fsync(fd_) == 0;
  if (!flushed || (!is_standard_output() && ::close(std::exchange(fd_, -1)) != 0)) {
    status = internal_error(fmt::format("cannot write {}: {}", name_, std::strerror(errno)));
  }
  if (status.ok() && !temporary_.empty()) {
    if (::rename(temporary_.c_str(), target_.c_str()) != 0) {
      status = cannot_write(name_, errno);
    } else {
      interrupt_->remove_temporary(std::exchange(temporary_, {}));
    }
  }
  discard();
  return status;
}

}  // namespace anyslot::cli
