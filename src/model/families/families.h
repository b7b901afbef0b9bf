#pragma once

#include "model/architecture.h"

// The families of the table in architecture.cc: see Architecture for what the functions do.

namespace anyslot {

void read_gemma2_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_gemma2(const ModelConfig& config);

void read_gemma3_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_gemma3(const ModelConfig& config);

void read_granite_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_granite(const ModelConfig& config);

void read_llama_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_llama(const ModelConfig& config);

void read_mistral_config(const ConfigReader& reader, ModelConfig& config);

void read_mixtral_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_mixtral(const ModelConfig& config);

void read_olmo2_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_olmo2(const ModelConfig& config);

void read_phi3_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_phi3(const ModelConfig& config);

void read_qwen2_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_qwen2(const ModelConfig& config);

void read_qwen3_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_qwen3(const ModelConfig& config);

void read_qwen3_moe_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_qwen3_moe(const ModelConfig& config);

void read_smollm3_config(const ConfigReader& reader, ModelConfig& config);
ModelDescription describe_smollm3(const ModelConfig& config);

}  // namespace anyslot
