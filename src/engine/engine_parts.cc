#include "engine/engine_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <utility>

#include "backend/tracing_backend.h"
#include "base/compute_type.h"
#include "base/cpu_count.h"
#include "base/system_memory.h"
#include "engine/model_files.h"
#include "engine/pool_size.h"
#include "engine/text_parts.h"

namespace anyslot::internal {

namespace {

namespace fs = std::filesystem;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kDefaultKvLimit = 4096 * kMiB;
/// Of a GPU's memory: for plans, partial results of attention, and recorded steps.
constexpr int64_t kDeviceReserve = 512 * kMiB;
constexpr uint64_t kRandomWeightsSeed = 1;

Status check_config(const EngineConfig& config) {
  if (config.model_path.empty() && config.random_weights_config.empty()) {
    return invalid_argument("no model given; name its folder or GGUF file with --model");
  }
  if (!config.model_path.empty() && !config.random_weights_config.empty()) {
    return invalid_argument("both --model and --random-weights given; they exclude each other");
  }
  if (!config.tokenizer_path.empty() && config.random_weights_config.empty()) {
    return invalid_argument(
        "--tokenizer goes with --random-weights only: a model has a tokenizer of its own");
  }
  if (config.num_threads < 0 || config.num_threads > 1024) {
    return invalid_argument(fmt::format("threads is {}; it must be between 0 (automatic) and 1024",
                                        config.num_threads));
  }
  if (config.kv_cache_bytes < 0) return invalid_argument("the KV cache size is negative");
  if (!(config.gpu_memory_utilization > 0 && config.gpu_memory_utilization <= 1)) {
    return invalid_argument(
        fmt::format("gpu_memory_utilization is {}; it must be above 0 and at "
                    "most 1",
                    config.gpu_memory_utilization));
  }
  if (config.max_model_len < 0) return invalid_argument("the maximal model length is negative");
  if (config.max_running_requests < 1) {
    return invalid_argument("max_running_requests must be at least 1");
  }
  if (config.max_batch_tokens <= config.max_running_requests) {
    return invalid_argument(
        fmt::format("max_batch_tokens is {}; it must exceed max_running_requests, {}, so that "
                    "prompts advance while all decode",
                    config.max_batch_tokens, config.max_running_requests));
  }
  return {};
}

Expected<std::unique_ptr<Backend>> create_backend(const EngineConfig& config) {
  BackendOptions options;
  options.dtype = dtype_of(config.dtype);
  options.num_threads = config.num_threads;
  options.max_isa = config.max_isa;
  options.int8_weights = config.weights == WeightType::kInt8;
  if (config.device == "reference") return create_reference_backend(options);
  if (config.device == "cpu") return create_cpu_backend(options);
  if (config.device == "cuda") return create_cuda_backend(options);
  return invalid_argument(
      fmt::format("unknown device '{}'; use cpu, cuda or reference", config.device));
}

/// `files`: null for random weights.
Expected<std::unique_ptr<Decoder>> load_decoder(const EngineConfig& config, const ModelFiles* files,
                                                Backend& backend) {
  const Expected<ModelConfig> model =
      files == nullptr ? load_config_file(config.random_weights_config, config.max_model_len)
                       : files->config(config.max_model_len);
  if (!model.ok()) return model.status();
  if (files == nullptr) {
    return Decoder::load(random_weights(kRandomWeightsSeed, config.num_threads), *model, backend);
  }
  Expected<std::unique_ptr<WeightSource>> weights = files->weights(*model, config.num_threads);
  if (!weights.ok()) return weights.status();
  return Decoder::load(std::move(*weights), *model, backend);
}

/// The model's own, or the one that stands in for them; null: none.
Expected<std::unique_ptr<ModelFiles>> open_files(const std::string& path) {
  if (path.empty()) return std::unique_ptr<ModelFiles>();
  return open_model_files(path);
}

/// Before the weights, which may take minutes to load.
Status load_texts(const ModelFiles& files, EngineParts& parts) {
  TextParts texts;
  const std::vector<Status> failures = load_text_parts(files, texts);
  if (!failures.empty()) return failures.front();
  parts.model.block_trained = texts.block_trained();
  parts.model.default_method = texts.default_method();
  parts.tokenizer = std::move(texts.tokenizer);
  parts.chat_template = std::move(texts.chat_template);
  parts.rag_template = std::move(texts.rag_template);
  parts.stop_token_ids = std::move(texts.stop_token_ids);
  return {};
}

void describe_model(const ModelFiles* files, EngineParts& parts) {
  const ModelConfig& config = parts.decoder->config();
  parts.model.name = files == nullptr ? fs::path(parts.config.random_weights_config).stem().string()
                                      : files->name();
  parts.model.backend = parts.backend->description();
  parts.model.architecture = config.architecture;
  parts.model.num_parameters = parts.decoder->num_parameters();
  parts.model.vocab_size = config.vocab_size;
  parts.stop_token_ids.insert(parts.stop_token_ids.begin(), config.eos_token_ids.begin(),
                              config.eos_token_ids.end());
}

void finish_config(EngineParts& parts) {
  EngineConfig& config = parts.config;
  config.max_model_len = parts.decoder->config().max_model_len;
  if (!config.method) config.method = parts.model.default_method;
  parts.model.max_model_len = config.max_model_len;
  parts.model.has_tokenizer = parts.tokenizer != nullptr;
  parts.model.has_rag_template = parts.rag_template.has_value();
  parts.model.has_chat_template = parts.chat_template.has_value();
  parts.model.default_method = *config.method;
}

/// What the chosen share of the device's memory leaves when weights and working memory are taken.
Expected<int64_t> kv_bytes_of_device(const EngineConfig& config, const MemoryInfo& memory) {
  const auto share =
      static_cast<int64_t>(config.gpu_memory_utilization * static_cast<double>(memory.total_bytes));
  const int64_t used = memory.total_bytes - memory.free_bytes;
  const int64_t bytes = std::min(share - used, memory.free_bytes) - kDeviceReserve;
  if (bytes > 0) return bytes;
  return resource_exhausted(fmt::format(
      "no GPU memory is left for the KV cache: {} MiB of {} MiB are in use, {} MiB are kept for "
      "steps, and --gpu-memory-utilization {} allows {} MiB; raise it, end other programs on the "
      "GPU, or use a smaller model",
      used / kMiB, memory.total_bytes / kMiB, kDeviceReserve / kMiB, config.gpu_memory_utilization,
      share / kMiB));
}

Expected<int64_t> default_kv_bytes(const EngineParts& parts) {
  const Expected<std::optional<MemoryInfo>> device = parts.backend->device_memory();
  if (!device.ok()) return device.status();
  if (*device) return kv_bytes_of_device(parts.config, **device);
  return std::min(available_memory_bytes() / 4, kDefaultKvLimit);
}

Status create_kv_pool(EngineParts& parts) {
  EngineConfig& config = parts.config;
  const Expected<std::optional<MemoryInfo>> device = parts.backend->device_memory();
  if (!device.ok()) return device.status();
  if (*device) {
    if (Status status = parts.decoder->reserve(config.max_batch_tokens); !status) return status;
  }
  if (config.kv_cache_bytes == 0) {
    const Expected<int64_t> bytes = default_kv_bytes(parts);
    if (!bytes.ok()) return bytes.status();
    config.kv_cache_bytes = *bytes;
  }
  const DType dtype = kv_dtype_of(config.kv_cache_dtype, config.dtype);
  const auto block_bytes = static_cast<int64_t>(parts.decoder->kv_shape(dtype, 1).block_bytes());
  const int64_t num_blocks = num_pool_blocks(config.kv_cache_bytes, block_bytes);
  if (num_blocks < 1) {
    return resource_exhausted(
        fmt::format("a KV cache of {} bytes holds no block of {} tokens, which takes {} bytes; "
                    "raise --kv-cache",
                    config.kv_cache_bytes, kBlockSize, block_bytes));
  }
  parts.model.kv_bytes_per_token = block_bytes / kBlockSize;
  auto storage = parts.backend->create_kv_storage(parts.decoder->kv_shape(dtype, num_blocks));
  if (!storage.ok()) return storage.status();
  parts.storage = std::move(*storage);
  return {};
}

}  // namespace

Expected<EngineParts> load_engine_parts(const EngineConfig& config) {
  if (Status status = check_config(config); !status.ok()) return status;
  EngineParts parts;
  parts.config = config;
  if (config.num_threads == 0) parts.config.num_threads = default_num_threads();
  if (!config.trace_path.empty()) {
    auto trace = TraceFile::create(config.trace_path);
    if (!trace.ok()) return trace.status();
    parts.trace = std::move(*trace);
  }
  auto backend = create_backend(parts.config);
  if (!backend.ok()) return backend.status();
  parts.backend = std::move(*backend);
  if (parts.trace != nullptr) {
    parts.backend = create_tracing_backend(std::move(parts.backend), parts.trace);
  }
  const auto files = open_files(config.model_path);
  if (!files.ok()) return files.status();
  const auto stand_in = open_files(config.tokenizer_path);
  if (!stand_in.ok()) return stand_in.status();
  const ModelFiles* const texts = *stand_in != nullptr ? stand_in->get() : files->get();
  if (texts != nullptr) {
    if (Status status = load_texts(*texts, parts); !status.ok()) return status;
  }
  auto decoder = load_decoder(parts.config, files->get(), *parts.backend);
  if (!decoder.ok()) return decoder.status();
  parts.decoder = std::move(*decoder);
  describe_model(files->get(), parts);
  if (Status status = check_vocabulary(config.model_path + config.tokenizer_path,
                                       parts.tokenizer.get(), parts.model.vocab_size);
      !status.ok()) {
    return status;
  }
  finish_config(parts);
  // The types of KV and of stored weights enter the keys; the decoder's fingerprint covers the
  // checkpoint, settings and activations.
  parts.key_domain.model = DigestBuilder()
                               .add(parts.decoder->fingerprint())
                               .add(compute_type_name(config.dtype))
                               .add(weight_type_name(config.weights))
                               .add(kv_cache_type_name(config.kv_cache_dtype))
                               .finish();
  if (Status status = create_kv_pool(parts); !status.ok()) return status;
  return parts;
}

}  // namespace anyslot::internal
