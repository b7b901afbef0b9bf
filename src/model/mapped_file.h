#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "anyslot/status.h"

namespace anyslot {

/// A file mapped read-only. The bytes keep their address when the object moves. Shortening the file
/// while it is mapped ends the process (SIGBUS), as with every mapping.
class MappedFile {
 public:
  /// Fails with kNotFound when the file cannot be opened, kFailedPrecondition when it is no regular
  /// file or cannot be mapped.
  static Expected<MappedFile> open(const std::string& path);

  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes);

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace anyslot
