#pragma once

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "support/temporary_folder.h"
#include "text/byte_level.h"
#include "text/tokenizer.h"
#include "text/utf8.h"

namespace anyslot::testing_text {

/// A file of its own for one test, removed at the end.
class TempFile {
 public:
  explicit TempFile(const std::string& content) : path_(folder_.write("test.json", content)) {}
  const std::string& path() const { return path_; }

 private:
  testing_support::TemporaryFolder folder_;
  std::string path_;
};

inline nlohmann::json read_json(const std::string& path) {
  std::ifstream file(path);
  return nlohmann::json::parse(file);
}

/// A tokenizer.json whose model has one token per byte (id = byte) and nothing else.
inline nlohmann::json byte_tokenizer() {
  nlohmann::json vocab;
  for (int byte = 0; byte < 256; ++byte) {
    std::string name;
    append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
    vocab[name] = byte;
  }
  return {
      {"version", "1.0"},
      {"truncation", nullptr},
      {"padding", nullptr},
      {"added_tokens", nlohmann::json::array()},
      {"normalizer", nullptr},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}}},
      {"model", {{"type", "BPE"}, {"vocab", vocab}, {"merges", nlohmann::json::array()}}}};
}

/// Adds the merge of two tokens of the model; the new token gets the next free id.
inline void add_merge(nlohmann::json& file, const std::string& left, const std::string& right) {
  nlohmann::json& model = file["model"];
  const int id = static_cast<int>(model["vocab"].size() + file["added_tokens"].size());
  if (!model["vocab"].contains(left + right)) model["vocab"][left + right] = id;
  model["merges"].push_back({left, right});
}

inline nlohmann::json added_token(int id, const std::string& content, bool special = true) {
  return {{"id", id},        {"content", content},  {"single_word", false}, {"lstrip", false},
          {"rstrip", false}, {"normalized", false}, {"special", special}};
}

/// The token of a byte in SentencePiece's vocabularies, "<0x0A>".
inline std::string byte_name(int byte) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  return std::string("<0x") + kDigits[byte / 16] + kDigits[byte % 16] + ">";
}

/// As Llama 2 has it: 256 tokens of bytes (id = byte + 3), then characters and what merges make.
inline nlohmann::json sentencepiece_tokenizer() {
  nlohmann::json vocab = {{"<unk>", 0}, {"<s>", 1}, {"</s>", 2}};
  for (int byte = 0; byte < 256; ++byte) vocab[byte_name(byte)] = byte + 3;
  for (const char* character : {"▁", "a", "b", "é"}) vocab[character] = vocab.size();
  const nlohmann::json replace = {
      {"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", "▁"}};
  const nlohmann::json back = {
      {"type", "Replace"}, {"pattern", {{"String", "▁"}}}, {"content", " "}};
  const nlohmann::json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  return {
      {"version", "1.0"},
      {"added_tokens", {added_token(0, "<unk>"), added_token(1, "<s>"), added_token(2, "</s>")}},
      {"normalizer",
       {{"type", "Sequence"}, {"normalizers", {{{"type", "Prepend"}, {"prepend", "▁"}}, replace}}}},
      {"pre_tokenizer", nullptr},
      {"post_processor", nullptr},
      {"decoder",
       {{"type", "Sequence"},
        {"decoders", {back, {{"type", "ByteFallback"}}, {{"type", "Fuse"}}, strip}}}},
      {"model",
       {{"type", "BPE"},
        {"unk_token", "<unk>"},
        {"fuse_unk", true},
        {"byte_fallback", true},
        {"vocab", vocab},
        {"merges", nlohmann::json::array()}}}};
}

inline Expected<Tokenizer> load_json(const nlohmann::json& file) {
  const TempFile temp(file.dump());
  return Tokenizer::load(temp.path());
}

/// Fails the test that calls it when the file is refused.
inline Tokenizer must_load(const nlohmann::json& file) {
  Expected<Tokenizer> tokenizer = load_json(file);
  if (!tokenizer) throw std::runtime_error(tokenizer.status().message());
  return *std::move(tokenizer);
}

inline Tokenizer demo_tokenizer() {
  Expected<Tokenizer> tokenizer = Tokenizer::load(ANYSLOT_MODEL_DIR "/tokenizer.json");
  if (!tokenizer) throw std::runtime_error(tokenizer.status().message());
  return *std::move(tokenizer);
}

/// Valid UTF-8 of `length` characters from all planes, with the kinds that tokenizers trip over.
inline std::string random_text(std::mt19937& random, size_t length) {
  static const std::vector<std::u32string> kPools = {
      U"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
      U"0123456789",
      U" \t\r\n\v\f\u0085\u00a0\u180e\u2003\u2028\u3000",
      U".,;:!?'\"-_()[]{}<|>@#$%^&*+=/\\~`",
      U"'s't're've'm'll'd'S'T'RE",
      U"\u0301\u0308\u20e3\ufe0f\u200d\u200b",
      U"éüßñçøłőſKµªº²½Ⅷ٣७",
      U"日本語中文한국어текстעבריתالعربية",
      U"🙂👩👧🏽🇩🇪🧑🚀",
  };
  std::string text;
  for (size_t i = 0; i < length; ++i) {
    const size_t pool = random() % (kPools.size() + 1);
    char32_t code_point;
    if (pool < kPools.size()) {
      code_point = kPools[pool][random() % kPools[pool].size()];
    } else {
      do {
        code_point = static_cast<char32_t>(random() % 0x110000);
      } while (code_point >= 0xD800 && code_point <= 0xDFFF);
    }
    append_code_point(text, code_point);
  }
  return text;
}

}  // namespace anyslot::testing_text
