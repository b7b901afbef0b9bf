#include "model/model_config.h"

#include <bit>
#include <filesystem>
#include <system_error>

#include "model/architecture.h"
#include "model/config_reader.h"
#include "model/json_file.h"

namespace anyslot {

namespace {

void read_eos_token_ids(const ConfigReader& reader, ModelConfig& config) {
  if (!reader.has("eos_token_id")) return;
  config.eos_token_ids.clear();
  for (const int64_t id : reader.integers("eos_token_id", 0, config.vocab_size - 1)) {
    config.eos_token_ids.push_back(static_cast<int32_t>(id));
  }
}

/// generation_config.json is optional; what it says about ends goes first.
Status read_generation_config(const std::string& model_dir, ModelConfig& config) {
  const std::string path = model_dir + "/generation_config.json";
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return {};
  const Expected<nlohmann::json> json = read_json_file(path);
  if (!json) return json.status();
  Status status;
  read_eos_token_ids(ConfigReader(*json, path, status), config);
  return status;
}

void add_number(DigestBuilder& builder, double value) {
  builder.add(std::bit_cast<int64_t>(value));
}

void add_rope(DigestBuilder& builder, const RopeConfig& rope) {
  add_number(builder, rope.theta);
  builder.add(rope.llama3 ? "llama3" : "default");
  if (!rope.llama3) return;
  add_number(builder, rope.llama3->factor);
  add_number(builder, rope.llama3->low_freq_factor);
  add_number(builder, rope.llama3->high_freq_factor);
  builder.add(rope.llama3->original_max_position_embeddings);
}

}  // namespace

Digest ModelConfig::fingerprint() const {
  DigestBuilder builder;
  builder.add("anyslot model config 2").add(architecture);
  builder.add(vocab_size).add(hidden_size).add(intermediate_size);
  for (const int value : {num_layers, num_heads, num_kv_heads, head_dim}) {
    builder.add(static_cast<int64_t>(value));
  }
  builder.add(static_cast<int64_t>(std::bit_cast<int32_t>(rms_norm_eps)));
  add_rope(builder, rope);
  builder.add(static_cast<int64_t>(tie_word_embeddings ? 1 : 0));
  return builder.finish();
}

Expected<ModelConfig> load_model_config(const std::string& model_dir) {
  Expected<ModelConfig> config = load_config_file(model_dir + "/config.json");
  if (!config) return config;
  if (Status status = read_generation_config(model_dir, *config); !status) return status;
  return config;
}

Expected<ModelConfig> load_config_file(const std::string& path) {
  const Expected<nlohmann::json> json = read_json_file(path);
  if (!json) return json.status();
  Status status;
  const ConfigReader reader(*json, path, status);
  const std::vector<std::string> architectures = reader.texts("architectures");
  if (architectures.empty()) reader.fail("architectures", "is missing; it must name the model's");
  if (!status) return status;

  const Architecture* architecture = find_architecture(architectures.front());
  if (architecture == nullptr) {
    return failed_precondition(path + ": architecture " + quote_name(architectures.front()) +
                               " is not supported; supported: " + supported_architectures());
  }
  ModelConfig config;
  config.architecture = architectures.front();
  architecture->read_config(reader, config);
  read_eos_token_ids(reader, config);
  if (!status) return status;
  return config;
}

}  // namespace anyslot
