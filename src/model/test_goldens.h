#pragma once

namespace anyslot {

/// The tiny models of tests/goldens/tiny with logits of both kinds: documents encoded in place and
/// alone. A new family is a row here and a folder there; model and engine are held to all of them.
inline constexpr const char* kGoldenModels[] = {
    "granite",
    "llama-plain",
    "llama-rope-linear",
    "llama-rope-llama3",
    "llama-rope-yarn",
    "llama-tied",
    "olmo2",
    "phi3",
    "phi3-partial",  // half of a head is turned
    "qwen2",
    "qwen3",
    "smollm3",
    "smollm3-unturned",  // of a decoder of our own: tests/goldens/unturned_layers.py
};

}  // namespace anyslot
