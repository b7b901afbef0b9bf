#include "model/gguf/gguf_architecture.h"

#include <utility>

#include "model/json_file.h"

// Names as the files have them that llama.cpp's converter writes (github.com/ggml-org/llama.cpp:
// conversion/, gguf-py/gguf/constants.py).

namespace anyslot {

namespace {

constexpr GgufArchitecture kArchitectures[] = {
    {.name = "gemma2",
     .family = "Gemma2ForCausalLM",
     .windowed = "Gemma2ForCausalLM",
     .post_attention_norm = "post_attention_norm",
     .is_gemma = true},
    {.name = "gemma3",
     .family = "Gemma3ForCausalLM",
     .windowed = "Gemma3ForCausalLM",
     .post_attention_norm = "post_attention_norm",
     .is_gemma = true},
    {.name = "granite", .family = "GraniteForCausalLM", .permuted = true, .has_multipliers = true},
    {.name = "llama",
     .family = "LlamaForCausalLM",
     .windowed = "MistralForCausalLM",
     .permuted = true},
    {.name = "olmo2", .family = "Olmo2ForCausalLM", .post_attention_norm = "post_attention_norm"},
    {.name = "phi3", .family = "Phi3ForCausalLM", .windowed = "Phi3ForCausalLM"},
    {.name = "qwen2", .family = "Qwen2ForCausalLM"},
    {.name = "qwen3", .family = "Qwen3ForCausalLM"},
    {.name = "smollm3", .family = "SmolLM3ForCausalLM", .permuted = true},
};

using Names = std::pair<std::string_view, std::string_view>;

constexpr Names kModelTensors[] = {
    {"model.embed_tokens.weight", "token_embd.weight"},
    {"model.norm.weight", "output_norm.weight"},
    {"lm_head.weight", "output.weight"},
};

/// Within a layer, without ".weight" or ".bias".
constexpr Names kLayerTensors[] = {
    {"input_layernorm", "attn_norm"},
    {"self_attn.q_proj", "attn_q"},
    {"self_attn.k_proj", "attn_k"},
    {"self_attn.v_proj", "attn_v"},
    {"self_attn.qkv_proj", "attn_qkv"},
    {"self_attn.o_proj", "attn_output"},
    {"self_attn.q_norm", "attn_q_norm"},
    {"self_attn.k_norm", "attn_k_norm"},
    {"pre_feedforward_layernorm", "ffn_norm"},
    {"post_feedforward_layernorm", "post_ffw_norm"},
    {"mlp.gate_proj", "ffn_gate"},
    {"mlp.up_proj", "ffn_up"},
    {"mlp.gate_up_proj", "ffn_up"},
    {"mlp.down_proj", "ffn_down"},
};

/// The second name of the pair whose first is `name`; empty when there is none.
template <size_t kCount>
std::string_view translate(const Names (&table)[kCount], std::string_view name) {
  for (const auto& [theirs, ours] : table) {
    if (theirs == name) return ours;
  }
  return {};
}

}  // namespace

Expected<const GgufArchitecture*> gguf_architecture(const GgufFile& file) {
  Status status;
  const GgufFields fields(file, status);
  const auto name = fields.text("general.architecture");
  if (!name) fields.fail("general.architecture", "is missing");
  if (!status) return status;
  std::string supported;
  for (const GgufArchitecture& architecture : kArchitectures) {
    if (architecture.name == *name) return &architecture;
    if (!supported.empty()) supported += ", ";
    supported += architecture.name;
  }
  return failed_precondition(file.path() + ": architecture " + quote_name(*name) +
                             " is not supported in a GGUF file; supported: " + supported);
}

std::string gguf_tensor_name(const GgufArchitecture& architecture, std::string_view name) {
  constexpr std::string_view kLayers = "model.layers.";
  if (!name.starts_with(kLayers)) return std::string(translate(kModelTensors, name));
  const size_t layer_end = name.find('.', kLayers.size());
  const size_t part_end = name.rfind('.');
  const std::string_view layer = name.substr(kLayers.size(), layer_end - kLayers.size());
  const std::string_view part = name.substr(layer_end + 1, part_end - layer_end - 1);
  const std::string_view ours = part == "post_attention_layernorm"
                                    ? architecture.post_attention_norm
                                    : translate(kLayerTensors, part);
  if (ours.empty()) return {};
  std::string whole = "blk.";
  whole.append(layer).append(".").append(ours).append(name.substr(part_end));
  return whole;
}

}  // namespace anyslot
