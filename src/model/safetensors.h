#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/status.h"
#include "base/hash.h"
#include "base/tensor_view.h"
#include "model/mapped_file.h"
#include "model/tensor_info.h"

namespace anyslot {

/// A tensor in a mapped file. Its bytes live as long as the store and may be misaligned.
struct StoredTensor {
  std::string dtype;  // as the file has it: "F32", "BF16", "I32", ...
  std::vector<int64_t> shape;
  std::span<const std::byte> bytes;
  int file = 0;  // index into the store's files
};

/// The tensors of a model folder or of one safetensors file, memory-mapped. Every header is checked
/// whole before anything is handed out.
class TensorStore {
 public:
  /// Opens model.safetensors of the folder, or else the shards that model.safetensors.index.json
  /// lists. Fails with kNotFound for a missing file and kFailedPrecondition for an unusable one, in
  /// one line that names file and tensor.
  static Expected<TensorStore> open(const std::string& model_dir);
  /// Opens one file.
  static Expected<TensorStore> open_file(const std::string& path);

  TensorStore(TensorStore&&) noexcept = default;
  TensorStore& operator=(TensorStore&&) noexcept = default;

  /// nullptr when absent.
  const StoredTensor* find(std::string_view name) const;
  /// The tensor as a matrix [product of all dimensions but the last, last dimension]; it must have
  /// exactly `shape` and be F32, BF16 or F16. Read-only memory, aligned for its dtype (a tensor
  /// that the file holds misaligned is copied once). Valid as long as the store.
  Expected<TensorView> get(std::string_view name, std::span<const int64_t> shape);

  /// Whether get() would succeed, told from the headers alone.
  Status check(std::string_view name, std::span<const int64_t> shape) const;

  /// Ascending.
  std::vector<std::string> names() const;
  /// The tensors as the headers describe them, their names ascending.
  std::vector<TensorInfo> tensors() const;
  int num_files() const { return static_cast<int>(files_.size()); }

  /// Identifies the weights, however they are sharded: see WeightDigest.
  Digest fingerprint() const;

 private:
  TensorStore() = default;

  /// Maps a file; returns its tensors by name.
  Expected<std::map<std::string, StoredTensor, std::less<>>> map_file(const std::string& path);
  Status add_shards(const std::string& model_dir, const std::string& index_path);
  const std::string& file_of(const StoredTensor& tensor) const;

  std::string origin_;  // the folder or file, for messages
  std::deque<MappedFile> files_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
  std::map<std::string, std::vector<std::byte>, std::less<>> realigned_;
};

}  // namespace anyslot
