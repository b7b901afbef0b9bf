#include "model/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include "model/json_file.h"
#include "model/safetensors_header.h"
#include "model/weight_digest.h"

namespace anyslot {

namespace {

using TensorMap = std::map<std::string, StoredTensor, std::less<>>;

bool exists(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::optional<DType> loadable_dtype(std::string_view name) {
  if (name == "F32") return DType::kFloat32;
  if (name == "BF16") return DType::kBFloat16;
  if (name == "F16") return DType::kFloat16;
  return std::nullopt;
}

std::string join_path(const std::string& folder, const std::string& name) {
  return folder + "/" + name;
}

Status missing_in_shard(const std::string& path, const std::string& what,
                        const std::string& index_path, const std::string& tensor) {
  return not_found(path + what + ": " + index_path + " expects tensor " + quote_name(tensor) +
                   " in it");
}

/// weight_map of an index file: tensor name -> shard, checked.
Expected<std::map<std::string, std::string>> read_weight_map(const std::string& index_path) {
  const Expected<nlohmann::json> index = read_json_file(index_path);
  if (!index) return index.status();
  const auto weight_map = index->find("weight_map");
  if (weight_map == index->end() || !weight_map->is_object() || weight_map->empty()) {
    return failed_precondition(index_path + ": no weight_map that names a shard for each tensor");
  }
  std::map<std::string, std::string> shards;
  for (const auto& [name, shard] : weight_map->items()) {
    const std::string where = index_path + ": tensor " + quote_name(name);
    if (!shard.is_string()) return failed_precondition(where + ": its shard is not a file name");
    auto file = shard.get<std::string>();
    // A shard stands beside its index: a path would let a downloaded folder read elsewhere.
    if (file.empty() || file == "." || file == ".." || file.find('/') != std::string::npos ||
        file.find('\0') != std::string::npos) {
      return failed_precondition(where + ": " + quote_name(file) +
                                 " is not a file name in the model's folder");
    }
    shards.emplace(name, std::move(file));
  }
  return shards;
}

}  // namespace

Expected<TensorStore> TensorStore::open(const std::string& model_dir) {
  const std::string single = model_dir + "/model.safetensors";
  const std::string index = model_dir + "/model.safetensors.index.json";
  if (exists(single)) return open_file(single);
  if (!exists(index)) {
    return not_found(model_dir +
                     ": no model.safetensors or model.safetensors.index.json in this folder; "
                     "weights of other formats must be converted to safetensors");
  }
  TensorStore store;
  store.origin_ = model_dir;
  if (Status status = store.add_shards(model_dir, index); !status) return status;
  return store;
}

Expected<TensorStore> TensorStore::open_file(const std::string& path) {
  TensorStore store;
  store.origin_ = path;
  Expected<TensorMap> tensors = store.map_file(path);
  if (!tensors) return tensors.status();
  store.tensors_ = std::move(*tensors);
  return store;
}

Expected<TensorMap> TensorStore::map_file(const std::string& path) {
  Expected<MappedFile> file = MappedFile::open(path);
  if (!file) return file.status();
  const std::span<const std::byte> bytes = file->bytes();
  Expected<std::vector<TensorEntry>> entries = parse_safetensors_header(path, bytes);
  if (!entries) return entries.status();
  TensorMap tensors;
  for (TensorEntry& entry : *entries) {
    tensors.emplace(std::move(entry.name),
                    StoredTensor{std::move(entry.dtype), std::move(entry.shape),
                                 bytes.subspan(entry.begin, entry.end - entry.begin),
                                 static_cast<int>(files_.size())});
  }
  files_.push_back(std::move(*file));
  return tensors;
}

Status TensorStore::add_shards(const std::string& model_dir, const std::string& index_path) {
  const Expected<std::map<std::string, std::string>> weight_map = read_weight_map(index_path);
  if (!weight_map) return weight_map.status();
  std::map<std::string, TensorMap> shards;
  for (const auto& [name, file] : *weight_map) {
    const std::string path = join_path(model_dir, file);
    auto shard = shards.find(file);
    if (shard == shards.end()) {
      if (!exists(path)) return missing_in_shard(path, ": missing shard", index_path, name);
      Expected<TensorMap> tensors = map_file(path);
      if (!tensors) return tensors.status();
      shard = shards.emplace(file, std::move(*tensors)).first;
    }
    const auto tensor = shard->second.find(name);
    if (tensor == shard->second.end()) {
      return missing_in_shard(path, ": incomplete shard", index_path, name);
    }
    tensors_.emplace(name, std::move(tensor->second));
  }
  return {};
}

const std::string& TensorStore::file_of(const StoredTensor& tensor) const {
  return files_[static_cast<size_t>(tensor.file)].path();
}

const StoredTensor* TensorStore::find(std::string_view name) const {
  const auto tensor = tensors_.find(name);
  return tensor == tensors_.end() ? nullptr : &tensor->second;
}

Status TensorStore::check(std::string_view name, std::span<const int64_t> shape) const {
  const StoredTensor* tensor = find(name);
  if (tensor == nullptr) return failed_precondition(origin_ + ": no tensor " + quote_name(name));
  const std::string where = file_of(*tensor) + ": tensor " + quote_name(name);
  if (!loadable_dtype(tensor->dtype)) {
    return failed_precondition(where + " has dtype " + quote_name(tensor->dtype) +
                               "; F32, BF16 and F16 can be loaded");
  }
  if (!std::ranges::equal(tensor->shape, shape)) {
    return failed_precondition(where + " has shape " + shape_text(tensor->shape) +
                               ", where the model's config needs " + shape_text(shape));
  }
  return {};
}

Expected<TensorView> TensorStore::get(std::string_view name, std::span<const int64_t> shape) {
  if (Status status = check(name, shape); !status) return status;
  const StoredTensor* tensor = find(name);
  const DType dtype = *loadable_dtype(tensor->dtype);
  const std::byte* data = tensor->bytes.data();
  if (reinterpret_cast<uintptr_t>(data) % dtype_size(dtype) != 0) {
    auto copy = realigned_.find(name);
    if (copy == realigned_.end()) {
      copy = realigned_
                 .emplace(name, std::vector<std::byte>(tensor->bytes.begin(), tensor->bytes.end()))
                 .first;
    }
    data = copy->second.data();
  }
  const int64_t cols = shape.empty() ? 1 : shape.back();
  int64_t rows = 1;
  for (size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  // TensorView has no read-only form; nothing writes to weights.
  return TensorView{const_cast<std::byte*>(data), dtype, rows, cols, cols};
}

std::vector<std::string> TensorStore::names() const {
  std::vector<std::string> names;
  names.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) names.push_back(name);
  return names;
}

std::vector<TensorInfo> TensorStore::tensors() const {
  std::vector<TensorInfo> infos;
  infos.reserve(tensors_.size());
  for (const auto& [name, tensor] : tensors_) {
    int64_t count = 1;
    for (const int64_t dimension : tensor.shape) count *= dimension;
    infos.push_back({name, tensor.dtype, count, static_cast<int64_t>(tensor.bytes.size()),
                     loadable_dtype(tensor.dtype)});
  }
  return infos;
}

Digest TensorStore::fingerprint() const {
  size_t total = 0;
  for (const auto& [name, tensor] : tensors_) total += tensor.bytes.size();
  WeightDigest digest(total);
  for (const auto& [name, tensor] : tensors_) {
    digest.add(name, tensor.dtype, tensor.shape, tensor.bytes);
  }
  return digest.finish();
}

}  // namespace anyslot
