#include "text_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <utf8proc.h>

#include <cerrno>
#include <cstring>

namespace anyslot::cli {

Expected<std::string> read_file(const std::string& path) {
  const bool standard_input = path == "-";
  const int fd = standard_input ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const auto failure = [&] {
    return invalid_argument(
        fmt::format("cannot read {}: {}", input_name(path), std::strerror(errno)));
  };
  if (fd < 0) return failure();
  std::string bytes;
  char buffer[1 << 16];
  ssize_t size = 0;
  while ((size = ::read(fd, buffer, sizeof buffer)) != 0) {
    if (size > 0) {
      bytes.append(buffer, static_cast<size_t>(size));
    } else if (errno != EINTR) {
      break;
    }
  }
  Expected<std::string> result = size < 0 ? Expected<std::string>(failure()) : std::move(bytes);
  if (!standard_input) ::close(fd);
  return result;
}

std::optional<size_t> find_invalid_utf8(std::string_view text) {
  size_t offset = 0;
  while (offset < text.size()) {
    const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data() + offset);
    utf8proc_int32_t c = -1;
    const utf8proc_ssize_t size =
        utf8proc_iterate(bytes, static_cast<utf8proc_ssize_t>(text.size() - offset), &c);
    if (size <= 0) return offset;
    offset += static_cast<size_t>(size);
  }
  return std::nullopt;
}

std::string input_name(const std::string& path) { return path == "-" ? "standard input" : path; }

}  // namespace anyslot::cli
