#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include "anyslot/inspect.h"
#include "backend/ops.h"
#include "base/block.h"
#include "base/compute_type.h"
#include "engine/model_files.h"
#include "engine/pool_size.h"
#include "engine/rope_report.h"
#include "engine/text_parts.h"
#include "model/architecture.h"
#include "model/weight_list.h"

namespace anyslot {

namespace {

using namespace internal;

ModelSizes sizes_of(const ConfigOutline& outline) {
  return {.num_layers = outline.num_layers,
          .num_heads = outline.num_heads,
          .num_kv_heads = outline.num_kv_heads,
          .head_dim = outline.head_dim,
          .hidden_size = outline.hidden_size,
          .vocab_size = outline.vocab_size,
          .max_position_embeddings = outline.max_position_embeddings,
          .num_experts = outline.num_experts,
          .experts_per_token = outline.experts_per_token};
}

ModelSizes sizes_of(const ModelConfig& config) {
  return {.num_layers = config.num_layers,
          .num_heads = config.num_heads,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .hidden_size = config.hidden_size,
          .vocab_size = config.vocab_size,
          .max_position_embeddings = config.max_position_embeddings,
          .num_experts = config.experts.num_experts,
          .experts_per_token = config.experts.per_token};
}

std::vector<WindowReport> windows_of(const ModelConfig& config) {
  std::map<int64_t, int64_t> layers_of_window;
  for (int i = 0; i < config.num_layers; ++i) ++layers_of_window[config.window_of(i)];
  std::vector<WindowReport> windows;
  for (const auto& [window, layers] : layers_of_window) windows.push_back({window, layers});
  return windows;
}

std::vector<TensorTypeReport> types_of(const std::vector<TensorInfo>& tensors) {
  std::map<std::string, TensorTypeReport> types;
  for (const TensorInfo& tensor : tensors) {
    TensorTypeReport& type = types[tensor.type];
    type.type = tensor.type;
    ++type.num_tensors;
    type.num_elements += tensor.num_elements;
    type.bytes += tensor.bytes;
  }
  std::vector<TensorTypeReport> sorted;
  for (const auto& [name, type] : types) sorted.push_back(type);
  std::ranges::stable_sort(sorted, std::greater(), &TensorTypeReport::bytes);
  return sorted;
}

/// Fills a report, step by step in the order in which an engine loads a model.
class Inspection {
 public:
  Inspection(const std::string& path, const ModelFiles& files, const InspectOptions& options)
      : path_(path), files_(files), options_(options) {}

  Expected<ModelReport> run() {
    report_.name = files_.name();
    report_.problems = load_text_parts(files_, texts_);
    if (Status status = read_files(); !status.ok()) {
      return report_.problems.empty() ? status : report_.problems.front();
    }
    report_.tensors = types_of(tensors_);
    describe_texts();
    if (config_) describe_model(*config_);
    return std::move(report_);
  }

 private:
  /// Fails when so little can be read that there is nothing to report.
  Status read_files() {
    const Expected<ConfigOutline> outline = files_.outline();
    if (!outline.ok()) return outline.status();
    report_.architecture = outline->architecture;
    report_.sizes = sizes_of(*outline);
    Expected<ModelConfig> config = files_.config(options_.max_model_len);
    if (config.ok()) {
      config_ = std::move(*config);
    } else {
      report_.problems.push_back(config.status());
    }
    Expected<TensorList> list = files_.tensors();
    if (list.ok()) {
      report_.format = std::move(list->format);
      tensors_ = std::move(list->tensors);
      return {};
    }
    if (list.status().code() != StatusCode::kNotFound) return list.status();
    report_.problems.push_back(list.status());
    return {};
  }

  void describe_texts() {
    if (texts_.tokenizer != nullptr) {
      report_.tokenizer = {texts_.tokenizer->is_byte_level(), texts_.tokenizer->vocab_size()};
    }
    report_.has_rag_template = texts_.rag_template.has_value();
    report_.block_trained = texts_.block_trained();
    report_.default_method = texts_.default_method();
    describe_chat_template();
    std::vector<int32_t> stops = config_ ? config_->eos_token_ids : std::vector<int32_t>();
    stops.insert(stops.end(), texts_.stop_token_ids.begin(), texts_.stop_token_ids.end());
    for (const int32_t id : std::set(stops.begin(), stops.end())) {
      report_.stop_tokens.push_back(
          {id, texts_.tokenizer == nullptr ? "" : std::string(texts_.tokenizer->token_name(id))});
    }
  }

  void describe_chat_template() {
    if (texts_.chat_template) {
      const ChatMessage question{ChatRole::kUser, "question", {}};
      const Document document{"title", "text", ""};
      report_.chat_template = {true, texts_.chat_template->render({question}, {document}).ok()};
      return;
    }
    const auto source = files_.chat_template_source();
    if (source.ok() && *source) report_.chat_template = ChatTemplateReport();
  }

  void describe_model(const ModelConfig& config) {
    report_.has_config = true;
    report_.architecture = config.architecture;
    report_.sizes = sizes_of(config);
    report_.max_model_len = config.max_model_len;
    report_.tied_embeddings = config.tie_word_embeddings;
    report_.windows = windows_of(config);
    report_.ropes = ropes_of(config);
    for (int i = 0; i < config.num_layers; ++i) {
      report_.num_expert_layers += config.has_experts(i) ? 1 : 0;
    }
    const ModelDescription model = find_architecture(config.architecture)->describe(config);
    const WeightSizes sizes = weight_sizes(model);
    report_.num_parameters = sizes.num_parameters;
    describe_memory(config, sizes, files_.tensor_name(model.embedding.name));
    const ModelNeeds needs = needs_of(model);
    report_.gpu = check_cuda_needs(needs);
    const std::unique_ptr<WeightSource> source = open_weights(config);
    add_problem(check_cpu_needs(needs));
    const std::vector<WeightPart> parts = weight_parts(model);
    if (!report_.format.empty()) compare_names(parts);
    if (source != nullptr) check_weights(*source, parts);
    add_problem(check_vocabulary(path_, texts_.tokenizer.get(), config.vocab_size));
  }

  void describe_memory(const ModelConfig& config, const WeightSizes& sizes,
                       const std::string& embedding_name) {
    const auto embedding = std::ranges::find(tensors_, embedding_name, &TensorInfo::name);
    for (const ComputeType type : {ComputeType::kBFloat16, ComputeType::kFloat32}) {
      const DType dtype = dtype_of(type);
      // Where it is not there, as the engine would keep it; blocks are decoded to float32.
      const DType embedding_dtype =
          embedding == tensors_.end() ? dtype : embedding->dtype.value_or(DType::kFloat32);
      const auto block_bytes = static_cast<int64_t>(
          kv_shape_of(config, kv_dtype_of(options_.kv_cache_dtype, type), 1).block_bytes());
      const int64_t documents = num_pool_blocks(options_.kv_cache_bytes, block_bytes) /
                                blocks_for(options_.document_tokens);
      for (const WeightType weights : {WeightType::kComputeType, WeightType::kInt8}) {
        report_.memory.push_back(
            {type, weights,
             weight_bytes(sizes, embedding_dtype, dtype, weights == WeightType::kInt8),
             block_bytes / kBlockSize, documents});
      }
    }
  }

  /// nullptr where there are none, or none that can be used.
  std::unique_ptr<WeightSource> open_weights(const ModelConfig& config) {
    if (report_.format.empty()) return nullptr;  // a problem already
    Expected<std::unique_ptr<WeightSource>> source = files_.weights(config, 1);
    if (source.ok()) return std::move(*source);
    add_problem(source.status());
    return nullptr;
  }

  /// One problem of the tensors is enough: the others are mostly like it.
  void check_weights(const WeightSource& source, const std::vector<WeightPart>& parts) {
    for (const WeightPart& part : parts) {
      if (Status status = source.check(part.tensor); !status.ok()) return add_problem(status);
    }
  }

  void compare_names(const std::vector<WeightPart>& parts) {
    std::set<std::string_view> stored;
    for (const TensorInfo& tensor : tensors_) stored.insert(tensor.name);
    std::set<std::string> needed;
    for (const WeightPart& part : parts) {
      const std::string name = files_.tensor_name(part.tensor.name);
      const bool is_new = needed.insert(name).second;
      if (is_new && !stored.contains(name)) report_.missing_tensors.push_back(name);
    }
    for (const TensorInfo& tensor : tensors_) {
      if (!tensor.is_setting && !needed.contains(tensor.name)) {
        report_.unused_tensors.push_back(tensor.name);
      }
    }
  }

  void add_problem(const Status& status) {
    if (!status.ok()) report_.problems.push_back(status);
  }

  const std::string& path_;
  const ModelFiles& files_;
  const InspectOptions& options_;
  TextParts texts_;
  std::optional<ModelConfig> config_;  // none: the model is not supported
  std::vector<TensorInfo> tensors_;
  ModelReport report_;
};

}  // namespace

Expected<ModelReport> inspect_model(const std::string& path, const InspectOptions& options) {
  if (options.max_model_len < 0 || options.kv_cache_bytes < 0 || options.document_tokens < 1) {
    return invalid_argument(
        "a length or the size of the KV cache is negative, or documents have no tokens");
  }
  const Expected<std::unique_ptr<ModelFiles>> files = open_model_files(path);
  if (!files.ok()) return files.status();
  return Inspection(path, **files, options).run();
}

}  // namespace anyslot
