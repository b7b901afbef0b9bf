#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "anyslot/status.h"

namespace anyslot {

/// How documents become KV (docs/design.md, section 3).
enum class Method : uint8_t { kLazy, kBlock, kMepic, kPrefix, kFull };

inline constexpr Method kAllMethods[] = {Method::kLazy, Method::kBlock, Method::kMepic,
                                         Method::kPrefix, Method::kFull};

std::string_view method_name(Method method);
/// "lazy", "block", "mepic", "prefix" or "full".
Expected<Method> parse_method(std::string_view name);

/// The type of weights, activations and KV. Accumulation is always float32.
enum class ComputeType : uint8_t { kBFloat16, kFloat32, kFloat16 };

std::string_view compute_type_name(ComputeType type);
/// "bfloat16", "float16" or "float32".
Expected<ComputeType> parse_compute_type(std::string_view name);

/// The type in which the weights of linear layers are kept: that of ComputeType, or whole numbers
/// in [-127, 127] times a scale per output channel, rounded at load.
enum class WeightType : uint8_t { kComputeType, kInt8 };

/// "dtype" or "int8".
std::string_view weight_type_name(WeightType type);
Expected<WeightType> parse_weight_type(std::string_view name);

/// The type in which keys and values are cached: that of ComputeType, or floats of 8 bits: 4 of the
/// exponent, 3 of the mantissa, up to 448, with no scale, rounded when they are stored.
enum class KvCacheType : uint8_t { kComputeType, kFp8E4M3 };

/// "auto" or "fp8_e4m3".
std::string_view kv_cache_type_name(KvCacheType type);
/// Those and "fp8", which is fp8_e4m3.
Expected<KvCacheType> parse_kv_cache_type(std::string_view name);

/// Every option of an engine. Zero means "chosen by the engine" where a comment says so.
struct EngineConfig {
  std::string model_path;  // a GGUF file or the folder of a Hugging Face model (docs/models.md)
  /// Instead of model_path: a config.json. The model gets random weights, always the same, in
  /// bfloat16, and no tokenizer of its own: for measuring any shape without a checkpoint.
  std::string random_weights_config;
  /// Beside random_weights_config: a model whose tokenizer and templates take texts; its vocabulary
  /// must not be larger. Empty: requests give token ids.
  std::string tokenizer_path;
  std::string device = "cpu";  // "cpu", "cuda": the first NVIDIA GPU, or "reference": the oracle
  ComputeType dtype = ComputeType::kBFloat16;
  WeightType weights = WeightType::kComputeType;
  KvCacheType kv_cache_dtype = KvCacheType::kComputeType;
  std::optional<Method>
      method;  // default for requests; unset: lazy if the model is block-trained, else prefix
  int num_threads = 0;  // 0: one per physical core, within the CPU quota
  /// 0: on a GPU what gpu_memory_utilization leaves, else a quarter of the free memory, at most
  /// 4 GiB.
  int64_t kv_cache_bytes = 0;
  /// The share of a GPU's memory that weights, working memory and KV may take together.
  double gpu_memory_utilization = 0.9;
  int64_t max_model_len =
      0;  // tokens of prompt and answer together; 0: what the model was trained for
  /// Answers that advance together. Documents that are registered have a quarter as many slots of
  /// their own.
  int max_running_requests = 64;
  int max_batch_tokens = 2048;  // rows of one step, at most
  bool mepic_recompute_first_block = false;
  std::string
      max_isa;  // caps kernels: "avx2", "avx512", "avx512_bf16"; "sm_80", "sm_90a"; empty: the best
  /// A file that gets the engine's steps and their operations as a Chrome trace (JSON, for
  /// chrome://tracing and Perfetto) while the engine runs; empty: none. It is complete when the
  /// engine is gone.
  std::string trace_path;

  /// A control for tests, never for serving: under method lazy, documents keep the angles of
  /// position 0 whatever their slot. The other methods do not read it.
  bool ignore_placement_angles = false;
};

}  // namespace anyslot
