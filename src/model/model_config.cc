#include "model/model_config.h"

#include <bit>
#include <filesystem>
#include <system_error>
#include <utility>

#include "model/architecture.h"
#include "model/config_object.h"
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

void add_scaling(DigestBuilder& builder, std::monostate) { builder.add("default"); }

void add_scaling(DigestBuilder& builder, const LinearRopeScaling& scaling) {
  builder.add("linear");
  add_number(builder, scaling.factor);
}

void add_scaling(DigestBuilder& builder, const Llama3RopeScaling& scaling) {
  builder.add("llama3").add(scaling.original_max_position_embeddings);
  for (const double value : {scaling.factor, scaling.low_freq_factor, scaling.high_freq_factor}) {
    add_number(builder, value);
  }
}

void add_scaling(DigestBuilder& builder, const YarnRopeScaling& scaling) {
  builder.add("yarn").add(scaling.original_max_position_embeddings);
  builder.add(int64_t{scaling.truncate});
  for (const double value :
       {scaling.factor, scaling.beta_fast, scaling.beta_slow, scaling.attention_factor}) {
    add_number(builder, value);
  }
}

void add_scaling(DigestBuilder& builder, const LongRopeScaling& scaling) {
  builder.add("longrope");
  add_number(builder, scaling.attention_factor);
  for (const double factor : scaling.factors) add_number(builder, factor);
}

void add_rope(DigestBuilder& builder, const RopeConfig& rope) {
  add_number(builder, rope.theta);
  builder.add(int64_t{rope.rotary_dim});
  std::visit([&builder](const auto& scaling) { add_scaling(builder, scaling); }, rope.scaling);
}

void add_facts(DigestBuilder& builder, const std::vector<bool>& facts) {
  builder.add(static_cast<int64_t>(facts.size()));
  for (const bool fact : facts) builder.add(int64_t{fact});
}

void add_experts(DigestBuilder& builder, const ExpertsConfig& experts) {
  add_facts(builder, experts.layers);
  builder.add(experts.num_experts).add(experts.per_token).add(experts.intermediate_size);
  builder.add(int64_t{experts.normalized});
}

}  // namespace

Digest ModelConfig::fingerprint() const {
  DigestBuilder builder;
  builder.add("anyslot model config 4").add(architecture);
  builder.add(vocab_size).add(hidden_size).add(intermediate_size);
  for (const int value : {num_layers, num_heads, num_kv_heads, head_dim}) {
    builder.add(static_cast<int64_t>(value));
  }
  builder.add(static_cast<int64_t>(std::bit_cast<int32_t>(rms_norm_eps)));
  add_rope(builder, rope);
  add_facts(builder, turned_layers);
  builder.add(window);
  add_facts(builder, local_layers);
  builder.add(int64_t{local_rope.has_value()});
  if (local_rope) add_rope(builder, *local_rope);
  add_experts(builder, experts);
  for (const double value : {multipliers.embedding, multipliers.scores, multipliers.residual,
                             multipliers.logits, score_cap, logit_cap}) {
    add_number(builder, value);
  }
  for (const bool fact : {attention_bias, mlp_bias, tie_word_embeddings}) {
    builder.add(int64_t{fact});
  }
  return builder.finish();
}

Expected<ModelConfig> load_model_config(const std::string& model_dir, int64_t max_model_len) {
  Expected<ModelConfig> config = load_config_file(model_dir + "/config.json", max_model_len);
  if (!config) return config;
  if (Status status = read_generation_config(model_dir, *config); !status) return status;
  return config;
}

Expected<ModelConfig> load_config_file(const std::string& path, int64_t max_model_len) {
  const Expected<nlohmann::json> json = read_json_file(path);
  if (!json) return json.status();
  return read_config_object(*json, path, max_model_len);
}

Expected<std::string> read_architecture(const nlohmann::json& object, const std::string& where) {
  Status status;
  const ConfigReader reader(object, where, status);
  std::vector<std::string> architectures = reader.texts("architectures");
  if (architectures.empty()) reader.fail("architectures", "is missing; it must name the model's");
  if (!status) return status;
  return std::move(architectures.front());
}

Expected<ModelConfig> read_config_object(const nlohmann::json& object, const std::string& where,
                                         int64_t max_model_len) {
  const Expected<std::string> name = read_architecture(object, where);
  if (!name) return name.status();
  const Architecture* architecture = find_architecture(*name);
  if (architecture == nullptr) {
    return failed_precondition(where + ": architecture " + quote_name(*name) + " " +
                               why_unsupported(*name));
  }
  Status status;
  const ConfigReader reader(object, where, status);
  ModelConfig config;
  config.architecture = *name;
  config.max_model_len = max_model_len;
  architecture->read_config(reader, config);
  read_eos_token_ids(reader, config);
  if (!status) return status;
  return config;
}

}  // namespace anyslot
