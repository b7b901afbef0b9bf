#include "text/gguf_pre_tokenizer.h"

#include <utility>

namespace anyslot {

namespace {

// The expressions of the tokenizers that gave the names, as their tokenizer.json files have them.
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kEachDigit = R"(\p{N})";

// The names and what goes with them: github.com/ggml-org/llama.cpp, src/llama-vocab.cpp.
constexpr GgufPreTokenizer kPreTokenizers[] = {
    {.name = "llama-bpe", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "llama3", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "llama-v3", .split = kLlama3, .ignore_merges = true, .adds_bos = true},
    {.name = "dbrx", .split = kLlama3},
    {.name = "qwen2", .split = kQwen2, .composes = true},
    {.name = "deepseek-r1-qwen", .split = kQwen2, .composes = true},
    {.name = "gpt-2", .split = {}, .gpt2_words = true},
    {.name = "olmo", .split = {}, .gpt2_words = true},
    {.name = "smollm", .split = kEachDigit, .gpt2_words = true},
    {.name = "refact", .split = kEachDigit, .gpt2_words = true},
    {.name = "starcoder", .split = kEachDigit, .gpt2_words = true},
    {.name = "gpt-4o", .split = kGpt4o},
    {.name = "tekken", .split = kTekken, .ignore_merges = true, .adds_bos = true},
};

}  // namespace

std::span<const GgufPreTokenizer> gguf_pre_tokenizers() { return kPreTokenizers; }

Expected<std::vector<PreTokenizer::Step>> split_steps(const GgufPreTokenizer& pre) {
  std::vector<PreTokenizer::Step> steps;
  for (const std::string_view expression : {pre.split, pre.gpt2_words ? kGpt2Words : ""}) {
    if (expression.empty()) continue;
    Expected<Regex> regex = Regex::compile(expression);
    if (!regex) return regex.status();
    steps.emplace_back(SplitStep{Pattern(*std::move(regex))});
  }
  return steps;
}

}  // namespace anyslot
