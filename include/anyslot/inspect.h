#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"

namespace anyslot {

struct InspectOptions {
  int64_t max_model_len = 0;                     // see EngineConfig
  int64_t kv_cache_bytes = int64_t{4096} << 20;  // of the pool that MemoryReport fills
  KvCacheType kv_cache_dtype = KvCacheType::kComputeType;
  int64_t document_tokens = 512;  // of each document in it; at least 1
};

/// The sizes of a model. 0: its files do not say.
struct ModelSizes {
  int64_t num_layers = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t hidden_size = 0;
  int64_t vocab_size = 0;
  int64_t max_position_embeddings = 0;  // tokens that the model was trained for
  int64_t num_experts = 0;              // 0, too, for a model without
  int64_t experts_per_token = 0;
};

/// Layers that see equally far back.
struct WindowReport {
  int64_t window = 0;  // tokens, the token itself among them; 0: everything
  int64_t num_layers = 0;
};

/// Layers whose Q and K are turned in the same way.
struct RopeReport {
  std::string type;  // as config.json's rope_type, or "none": they are not turned
  double theta = 0.0;
  int64_t rotary_dim = 0;                   // of head_dim
  std::optional<double> factor;             // of linear, llama3 and yarn
  std::optional<int64_t> original_context;  // tokens, of llama3 and yarn
  int64_t num_layers = 0;
};

/// The tensors of one type in a model's files.
struct TensorTypeReport {
  std::string type;  // as the files name it: "BF16", "Q4_K"
  int64_t num_tensors = 0;
  int64_t num_elements = 0;
  int64_t bytes = 0;
};

/// What one choice of EngineConfig::dtype and weights takes. float16 takes what bfloat16 takes.
struct MemoryReport {
  ComputeType dtype = ComputeType::kBFloat16;
  WeightType weights = WeightType::kComputeType;
  int64_t weight_bytes = 0;        // once loaded, without padding
  int64_t kv_bytes_per_token = 0;  // all layers
  int64_t documents = 0;           // that a pool of InspectOptions::kv_cache_bytes holds
};

struct TokenizerReport {
  bool byte_level = false;  // byte-pair encoding over bytes; else over characters
  int64_t vocab_size = 0;
};

struct ChatTemplateReport {
  bool rendered = false;         // false: this build renders no chat templates
  bool takes_documents = false;  // it places documents that are given beside the messages
};

struct StopToken {
  int32_t id = 0;
  std::string name;  // empty without a tokenizer
};

/// What the files of a model say of it.
struct ModelReport {
  std::string name;
  std::string format;        // for people: "safetensors, 2 files"; empty: there are no weights
  std::string architecture;  // config.json's architectures[0], or what a GGUF file says instead
  ModelSizes sizes;

  // Known when the architecture and its settings are supported, else empty.
  bool has_config = false;
  int64_t max_model_len = 0;
  int64_t num_parameters = 0;  // tied embeddings count once
  bool tied_embeddings = false;
  std::vector<WindowReport> windows;  // those that see everything first
  std::vector<RopeReport> ropes;
  int64_t num_expert_layers = 0;  // layers with experts
  std::vector<MemoryReport> memory;
  Status gpu;  // why a GPU would refuse it; ok: it would not

  std::vector<TensorTypeReport> tensors;     // the largest first
  std::vector<std::string> missing_tensors;  // that the architecture asks for
  std::vector<std::string> unused_tensors;   // that nothing reads

  std::optional<TokenizerReport> tokenizer;
  std::optional<ChatTemplateReport> chat_template;
  bool has_rag_template = false;
  bool block_trained = false;
  Method default_method = Method::kPrefix;
  std::vector<StopToken> stop_tokens;

  /// What keeps the model from being served on the CPU, a line each; the first is what
  /// Engine::open fails with.
  std::vector<Status> problems;
};

/// Reads the settings, the tokenizer, the templates and the headers of the weights; no weight is
/// read. `path`: see EngineConfig::model_path. Fails as Engine::open does for files that cannot be
/// read at all; a model that can be read but not served has a report with problems.
Expected<ModelReport> inspect_model(const std::string& path, const InspectOptions& options);

}  // namespace anyslot
