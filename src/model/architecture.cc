#include "model/architecture.h"

#include "model/families/families.h"

namespace anyslot {

namespace {

constexpr Architecture kArchitectures[] = {
    {"Gemma2ForCausalLM", read_gemma2_config, describe_gemma2},
    {"Gemma3ForCausalLM", read_gemma3_config, describe_gemma3},
    {"GraniteForCausalLM", read_granite_config, describe_granite},
    {"LlamaForCausalLM", read_llama_config, describe_llama},
    {"MistralForCausalLM", read_mistral_config, describe_llama},
    {"MixtralForCausalLM", read_mixtral_config, describe_mixtral},
    {"Olmo2ForCausalLM", read_olmo2_config, describe_olmo2},
    {"Phi3ForCausalLM", read_phi3_config, describe_phi3},
    {"Qwen2ForCausalLM", read_qwen2_config, describe_qwen2},
    {"Qwen3ForCausalLM", read_qwen3_config, describe_qwen3},
    {"Qwen3MoeForCausalLM", read_qwen3_moe_config, describe_qwen3_moe},
    {"SmolLM3ForCausalLM", read_smollm3_config, describe_smollm3},
};

/// Families that people have and the decoder cannot run, and what it lacks.
struct Gap {
  std::string_view name;
  std::string_view missing;
};

constexpr Gap kGaps[] = {
    {"CohereForCausalLM", "LayerNorm and parallel halves of a layer"},
    {"DeepseekV2ForCausalLM", "latent attention and experts"},
    {"DeepseekV3ForCausalLM", "latent attention and experts"},
    {"Gemma3ForConditionalGeneration", "images; the family's text models are Gemma3ForCausalLM"},
    {"GptOssForCausalLM", "sinks of attention and quantized experts"},
    {"PhiMoEForCausalLM", "experts and LayerNorm"},
    {"Qwen2MoeForCausalLM", "experts that all tokens share"},
};

}  // namespace

KvShape kv_shape_of(const ModelConfig& config, DType dtype, int64_t num_blocks) {
  return {.num_layers = config.num_layers,
          .num_kv_heads = config.num_kv_heads,
          .head_dim = config.head_dim,
          .dtype = dtype,
          .num_blocks = num_blocks};
}

const Architecture* find_architecture(std::string_view name) {
  for (const Architecture& architecture : kArchitectures) {
    if (architecture.name == name) return &architecture;
  }
  return nullptr;
}

std::string why_unsupported(std::string_view name) {
  for (const Gap& gap : kGaps) {
    if (gap.name == name) return "is not supported: it needs " + std::string(gap.missing);
  }
  std::string names;
  for (const Architecture& architecture : kArchitectures) {
    if (!names.empty()) names += ", ";
    names += architecture.name;
  }
  return "is not supported; supported: " + names;
}

}  // namespace anyslot
