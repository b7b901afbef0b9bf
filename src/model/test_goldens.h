#pragma once

#include <string_view>

namespace anyslot {

/// The tiny models of tests/goldens/tiny with logits of both kinds: documents encoded in place and
/// alone. Those with windows have the latter from a decoder of our own, in alone.safetensors
/// (tests/goldens/own_goldens.py). A new family is a row here and a folder there; model and engine
/// are held to all of them.
inline constexpr const char* kGoldenModels[] = {
    "gemma2",
    "gemma3",
    "gemma3-full",  // one layer sees everything; all of it from the decoder of our own
    "granite",
    "llama-plain",
    "llama-rope-linear",
    "llama-rope-llama3",
    "llama-rope-yarn",
    "llama-tied",
    "mistral-window",
    "mixtral",
    "olmo2",
    "phi3",
    "phi3-partial",  // half of a head is turned
    "qwen2",
    "qwen3",
    "qwen3-moe",
    "smollm3",
    "smollm3-unturned",  // of the decoder of our own
};

/// Those of them that a GPU refuses: soft caps of scores, experts.
inline constexpr std::string_view kRefusedOnGpu[] = {"gemma2", "mixtral", "qwen3-moe"};

}  // namespace anyslot
