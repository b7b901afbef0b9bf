#pragma once

#include <string>
#include <string_view>

#include "anyslot/status.h"
#include "interrupt.h"

namespace anyslot::cli {

/// Writes all bytes to a descriptor. Fails with kInternal, naming it, on a full disk or a closed
/// pipe.
Status write_all(int fd, std::string_view bytes, std::string_view name);

/// Writes to standard output.
Status print(std::string_view text);

/// A file that appears whole or not at all: bytes go to a temporary file beside it, which commit()
/// renames. "-" and "/dev/stdout" are standard output; it, pipes and devices are written directly.
class OutputFile {
 public:
  /// Fails with kInvalidArgument, naming the path, when it cannot be written. An interrupt removes
  /// the temporary file. `interrupt` must outlive the result.
  static Expected<OutputFile> open(const std::string& path, Interrupt& interrupt);

  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;
  /// Removes what was not committed.
  ~OutputFile();

  Status write(std::string_view bytes);
  /// After a failure nothing is left behind. To be called once, at the end.
  Status commit();

  bool is_standard_output() const;

 private:
  OutputFile(int fd, std::string name, std::string target, std::string temporary,
             Interrupt& interrupt);
  void discard();

  int fd_ = -1;
  std::string name_;       // for messages
  std::string target_;     // where the file ends
  std::string temporary_;  // empty: written directly
  Interrupt* interrupt_;
};

}  // namespace anyslot::cli
