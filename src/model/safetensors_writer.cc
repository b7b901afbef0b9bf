#include "model/safetensors_writer.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <filesystem>
#include <system_error>

#include "model/json_file.h"
#include "model/safetensors_header.h"

namespace anyslot {

namespace {

/// A file that vanishes again unless it is committed under its final name.
class PendingFile {
 public:
  explicit PendingFile(std::string target) : target_(std::move(target)) {
    static std::atomic<unsigned> counter{0};
    path_ = target_ + ".tmp-" + std::to_string(::getpid()) + "-" + std::to_string(counter++);
    fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd_ < 0) status_ = invalid_argument(reason("cannot be written"));
  }
  ~PendingFile() {
    if (fd_ >= 0) {
      ::close(fd_);
      ::unlink(path_.c_str());
    }
  }
  PendingFile(const PendingFile&) = delete;
  PendingFile& operator=(const PendingFile&) = delete;

  void write(const void* data, size_t size) {
    const char* cursor = static_cast<const char*>(data);
    while (status_.ok() && size > 0) {
      const ssize_t written = ::write(fd_, cursor, size);
      if (written < 0) {
        if (errno != EINTR) fail("cannot be written");
        continue;
      }
      cursor += written;
      size -= static_cast<size_t>(written);
    }
  }

  Status commit() {
    // Some file systems report a full disk only here.
    if (status_.ok() && ::fsync(fd_) != 0 && errno != EINVAL) fail("cannot be written");
    if (status_.ok() && ::rename(path_.c_str(), target_.c_str()) != 0) fail("cannot be replaced");
    if (status_.ok()) {
      ::close(fd_);
      fd_ = -1;
    }
    return status_;
  }

 private:
  std::string reason(const char* what) const {
    return target_ + ": " + what + ": " + std::generic_category().message(errno);
  }
  void fail(const char* what) { status_ = failed_precondition(reason(what)); }

  std::string target_;
  std::string path_;
  int fd_ = -1;
  Status status_;
};

Expected<std::string> make_header(std::span<const NamedTensor> tensors) {
  nlohmann::json header = nlohmann::json::object();
  size_t offset = 0;
  for (const NamedTensor& tensor : tensors) {
    size_t elements = 1;
    for (const int64_t dimension : tensor.shape) {
      if (dimension < 0 ||
          __builtin_mul_overflow(elements, static_cast<size_t>(dimension), &elements)) {
        return invalid_argument("tensor " + quote_name(tensor.name) + ": shape " +
                                shape_text(tensor.shape) + " is not possible");
      }
    }
    if (elements != tensor.values.size()) {
      return invalid_argument("tensor " + quote_name(tensor.name) + ": shape " +
                              shape_text(tensor.shape) + " does not fit its " +
                              std::to_string(tensor.values.size()) + " values");
    }
    if (tensor.name == "__metadata__" || header.contains(tensor.name)) {
      return invalid_argument("tensor " + quote_name(tensor.name) +
                              ": the name is reserved or stands twice");
    }
    const size_t end = offset + tensor.values.size_bytes();
    header[tensor.name] = {
        {"dtype", "F32"}, {"shape", tensor.shape}, {"data_offsets", {offset, end}}};
    offset = end;
  }
  try {
    std::string text = header.dump();
    text.resize((text.size() + 7) / 8 * 8, ' ');  // keeps the data aligned
    return text;
  } catch (const nlohmann::json::exception&) {
    return invalid_argument("a tensor's name is not valid UTF-8");
  }
}

/// What `path` stands for: behind a symbolic link, the file it leads to, which keeps the link.
Expected<std::string> resolve_target(const std::string& path) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) {
    return invalid_argument(path + ": cannot be replaced: not a regular file");
  }
  if (!std::filesystem::exists(status)) return path;
  const std::filesystem::path resolved = std::filesystem::canonical(path, error);
  return error ? path : resolved.string();
}

}  // namespace

Status write_safetensors(const std::string& path, std::span<const NamedTensor> tensors) {
  const Expected<std::string> header = make_header(tensors);
  if (!header) return header.status();
  const Expected<std::string> target = resolve_target(path);
  if (!target) return target.status();
  PendingFile file(*target);
  const uint64_t length = header->size();
  file.write(&length, sizeof length);
  file.write(header->data(), header->size());
  for (const NamedTensor& tensor : tensors) {
    file.write(tensor.values.data(), tensor.values.size_bytes());
  }
  return file.commit();
}

}  // namespace anyslot
