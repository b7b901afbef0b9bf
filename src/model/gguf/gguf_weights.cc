#include "model/gguf/gguf_weights.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/thread_pool.h"
#include "model/gguf/gguf_architecture.h"
#include "model/json_file.h"
#include "model/safetensors_header.h"
#include "model/weight_list.h"

namespace anyslot {

namespace {

/// The rows of Q and K, or the elements of their biases, as Hugging Face orders them. Dimensions i
/// and i + head_dim / 2 of a head turn together; llama.cpp's converter puts them beside each other.
void undo_permutation(const std::byte* from, size_t row_bytes, int64_t num_rows, int64_t head_dim,
                      std::byte* to) {
  const int64_t half = head_dim / 2;
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t head_begin = row / head_dim * head_dim;
    const int64_t in_head = row - head_begin;
    const int64_t source = head_begin + in_head % half * 2 + in_head / half;
    std::memcpy(to + static_cast<size_t>(row) * row_bytes,
                from + static_cast<size_t>(source) * row_bytes, row_bytes);
  }
}

bool is_permuted(const GgufArchitecture& architecture, std::string_view name) {
  if (!architecture.permuted) return false;
  return name.find(".self_attn.q_proj.") != std::string_view::npos ||
         name.find(".self_attn.k_proj.") != std::string_view::npos;
}

bool is_norm(std::string_view name) { return name.ends_with("norm.weight"); }

class GgufWeights final : public WeightSource {
 public:
  GgufWeights(std::shared_ptr<const GgufFile> file, const GgufArchitecture& architecture,
              int64_t head_dim, int num_threads)
      : file_(std::move(file)),
        architecture_(architecture),
        head_dim_(head_dim),
        num_threads_(num_threads) {}

  Expected<LoadedTensor> load(const WeightRef& weight) override {
    const Expected<const GgufTensor*> found = find(weight);
    if (!found) return found.status();
    const GgufTensor& tensor = **found;
    LoadedTensor loaded = tensor.type->dtype ? mapped(tensor) : decoded(tensor);
    if (architecture_.is_gemma && is_norm(weight.name)) return counted_from_one(loaded);
    if (!is_permuted(architecture_, weight.name)) return loaded;
    return in_order(loaded, weight.shape.front());
  }

  Status check(const WeightRef& weight) const override {
    const Expected<const GgufTensor*> found = find(weight);
    return found ? Status() : found.status();
  }

  Digest fingerprint() const override { return file_->fingerprint(); }

 private:
  Expected<const GgufTensor*> find(const WeightRef& weight) const {
    const std::string name = gguf_tensor_name(architecture_, weight.name);
    const GgufTensor* tensor = name.empty() ? nullptr : file_->find_tensor(name);
    if (tensor == nullptr) {
      const std::string& shown = name.empty() ? weight.name : name;
      return failed_precondition(file_->path() + ": no tensor " + quote_name(shown));
    }
    if (!std::ranges::equal(tensor->shape, weight.shape)) {
      return failed_precondition(file_->path() + ": tensor " + quote_name(name) + " has shape " +
                                 shape_text(tensor->shape) + ", where the metadata need " +
                                 shape_text(weight.shape));
    }
    return tensor;
  }

  static TensorView view_of(const GgufTensor& tensor, const void* data, DType dtype) {
    const int64_t cols = tensor.shape.back();
    int64_t rows = 1;
    for (size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
    // TensorView has no read-only form; nothing writes to weights.
    return {const_cast<void*>(data), dtype, rows, cols, cols};
  }

  LoadedTensor mapped(const GgufTensor& tensor) const {
    return {view_of(tensor, file_->data(tensor).data(), *tensor.type->dtype), nullptr};
  }

  LoadedTensor decoded(const GgufTensor& tensor) {
    constexpr size_t kChunkBlocks = 4096;
    const GgufTensorType& type = *tensor.type;
    const std::span<const std::byte> blocks = file_->data(tensor);
    const size_t num_blocks = blocks.size() / type.block_bytes;
    const size_t count = num_blocks * type.block_elements;
    LoadedTensor loaded;
    loaded.memory = std::make_unique_for_overwrite<std::byte[]>(count * sizeof(float));
    loaded.view = view_of(tensor, loaded.memory.get(), DType::kFloat32);
    const std::span<float> out(static_cast<float*>(loaded.view.data), count);
    const auto num_chunks = static_cast<int64_t>((num_blocks + kChunkBlocks - 1) / kChunkBlocks);
    if (threads_ == nullptr) threads_ = std::make_unique<ThreadPool>(num_threads_);
    threads_->parallel_for(num_chunks, [&](int64_t chunk, int) {
      const size_t begin = static_cast<size_t>(chunk) * kChunkBlocks;
      const size_t size = std::min(kChunkBlocks, num_blocks - begin);
      decode_gguf_blocks(type, blocks.subspan(begin * type.block_bytes, size * type.block_bytes),
                         out.subspan(begin * type.block_elements, size * type.block_elements));
    });
    return loaded;
  }

  /// A copy. The converter has added 1 in float32, so that taking it away gives the numbers back
  /// up to what that has rounded.
  static LoadedTensor counted_from_one(const LoadedTensor& loaded) {
    const auto count = static_cast<size_t>(loaded.view.rows * loaded.view.cols);
    LoadedTensor shifted{loaded.view,
                         std::make_unique_for_overwrite<std::byte[]>(count * sizeof(float))};
    shifted.view.data = shifted.memory.get();
    shifted.view.dtype = DType::kFloat32;
    auto* const out = static_cast<float*>(shifted.view.data);
    for (size_t i = 0; i < count; ++i) {
      out[i] = load_element(loaded.view.data, loaded.view.dtype, i) - 1.0F;
    }
    return shifted;
  }

  /// A copy. `num_rows`: of the matrix, or the elements of a bias.
  LoadedTensor in_order(const LoadedTensor& loaded, int64_t num_rows) const {
    const size_t bytes = loaded.view.row_bytes() * static_cast<size_t>(loaded.view.rows);
    LoadedTensor ordered{loaded.view, std::make_unique_for_overwrite<std::byte[]>(bytes)};
    ordered.view.data = ordered.memory.get();
    undo_permutation(loaded.view.row(0), bytes / static_cast<size_t>(num_rows), num_rows, head_dim_,
                     ordered.memory.get());
    return ordered;
  }

  std::shared_ptr<const GgufFile> file_;  // views of plain numbers lie in it
  const GgufArchitecture& architecture_;  // a row of the table
  int64_t head_dim_;
  int num_threads_;
  std::unique_ptr<ThreadPool> threads_;  // once blocks are decoded
};

Status check_types(const GgufFile& file) {
  for (const auto& [name, tensor] : file.tensors()) {
    if (tensor.type->is_readable()) continue;
    return failed_precondition(
        file.path() + ": tensor " + quote_name(name) + " is of type " + tensor.type->name +
        ", which is not supported; take a file whose tensors are of these types: " +
        supported_gguf_types());
  }
  return {};
}

/// A tensor that nothing reads would be a part of the model that is left out.
Status check_all_used(const GgufFile& file, const GgufArchitecture& architecture,
                      const ModelDescription& model) {
  std::set<std::string, std::less<>> used;
  for (const WeightPart& part : weight_parts(model)) {
    used.insert(gguf_tensor_name(architecture, part.tensor.name));
  }
  for (const auto& [name, tensor] : file.tensors()) {
    if (used.contains(name) || is_rope_tensor(name)) continue;
    return failed_precondition(file.path() + ": tensor " + quote_name(name) +
                               " has no place in a model of architecture " +
                               std::string(architecture.name) + " as it is supported here");
  }
  return {};
}

}  // namespace

std::vector<TensorInfo> gguf_tensors(const GgufFile& file) {
  std::vector<TensorInfo> infos;
  for (const auto& [name, tensor] : file.tensors()) {
    int64_t count = 1;
    for (const int64_t dimension : tensor.shape) count *= dimension;
    infos.push_back({name, tensor.type->name, count,
                     static_cast<int64_t>(tensor.end - tensor.begin), tensor.type->dtype,
                     is_rope_tensor(name)});
  }
  return infos;
}

Expected<std::unique_ptr<WeightSource>> gguf_weights(std::shared_ptr<const GgufFile> file,
                                                     const ModelConfig& config, int num_threads) {
  const Expected<const GgufArchitecture*> architecture = gguf_architecture(*file);
  if (!architecture) return architecture.status();
  const Architecture* family = find_architecture(config.architecture);
  if (family == nullptr) {
    return failed_precondition("architecture " + config.architecture + " " +
                               why_unsupported(config.architecture));
  }
  if (Status status = check_types(*file); !status) return status;
  const ModelDescription model = family->describe(config);
  if (Status status = check_all_used(*file, **architecture, model); !status) return status;
  return std::unique_ptr<WeightSource>(
      std::make_unique<GgufWeights>(std::move(file), **architecture, config.head_dim, num_threads));
}

}  // namespace anyslot
