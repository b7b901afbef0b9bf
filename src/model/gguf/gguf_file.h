#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "base/hash.h"
#include "model/gguf/gguf_header.h"
#include "model/mapped_file.h"

namespace anyslot {

/// A model in one GGUF file, memory-mapped, its header checked whole.
class GgufFile {
 public:
  /// Fails with kNotFound for a file that cannot be opened and kFailedPrecondition for one that is
  /// no whole model, in one line.
  static Expected<std::shared_ptr<const GgufFile>> open(const std::string& path);

  const std::string& path() const { return file_.path(); }
  const GgufMap<GgufValue>& metadata() const { return header_.metadata; }
  const GgufMap<GgufTensor>& tensors() const { return header_.tensors; }
  /// nullptr when absent.
  const GgufTensor* find_tensor(std::string_view name) const;
  /// As long as the file lives.
  std::span<const std::byte> data(const GgufTensor& tensor) const;

  /// Identifies the weights: see WeightDigest.
  Digest fingerprint() const;

 private:
  GgufFile(MappedFile file, GgufHeader header);

  MappedFile file_;
  GgufHeader header_;
};

/// Reads metadata. The first failure, a value of another type or one that a reader complains about,
/// is kept in the caller's status, so that a reader looks at the status once. What is absent is
/// nullopt or empty.
class GgufFields {
 public:
  /// Both must outlive the reader.
  GgufFields(const GgufFile& file, Status& status) : file_(&file), status_(&status) {}

  bool has(std::string_view key) const;
  std::optional<bool> boolean(std::string_view key) const;
  std::optional<int64_t> integer(std::string_view key) const;
  /// A whole number or another.
  std::optional<double> number(std::string_view key) const;
  std::optional<std::string_view> text(std::string_view key) const;
  std::vector<int64_t> integers(std::string_view key) const;
  /// Whole ones or others.
  std::vector<double> numbers(std::string_view key) const;
  std::span<const std::string_view> texts(std::string_view key) const;

  void fail(std::string_view key, const std::string& what) const;
  void fail(const Status& status) const;
  bool ok() const { return status_->ok(); }
  const GgufFile& file() const { return *file_; }

 private:
  const GgufValue* find(std::string_view key) const;
  template <typename T>
  const T* find_as(std::string_view key, std::string_view wanted) const;
  /// The elements of a list of numbers, as `convert` (GgufNumber -> std::optional<T>) gives them.
  template <typename T, typename Convert>
  std::vector<T> list(std::string_view key, std::string_view wanted, const Convert& convert) const;

  const GgufFile* file_;
  Status* status_;
};

}  // namespace anyslot
