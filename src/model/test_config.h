#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "model/model_config.h"
#include "model/test_files.h"

namespace anyslot {

inline constexpr char kTestConfig[] = R"({
  "architectures": ["LlamaForCausalLM"],
  "vocab_size": 100,
  "hidden_size": 64,
  "intermediate_size": 96,
  "num_hidden_layers": 3,
  "num_attention_heads": 4,
  "rms_norm_eps": 1e-5,
  "max_position_embeddings": 256
})";

/// kTestConfig with further fields, which replace its own.
inline std::string config_with(const std::string& fields) {
  nlohmann::json config = nlohmann::json::parse(kTestConfig);
  std::string object = "{";
  object += fields;
  object += "}";
  config.update(nlohmann::json::parse(object));
  return config.dump();
}

/// Loads a folder with this config.json and, unless empty, this generation_config.json.
inline Expected<ModelConfig> load_config(const std::string& config,
                                         const std::string& generation = "") {
  const TemporaryFolder folder;
  folder.write("config.json", config);
  if (!generation.empty()) folder.write("generation_config.json", generation);
  return load_model_config(folder.path());
}

}  // namespace anyslot
