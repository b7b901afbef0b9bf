#include "text/gguf_tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "text/test_gguf_tokenizer.h"
#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_text::must_create;
using Ids = std::vector<int32_t>;

/// The metadata that say the same as a tokenizer.json.
struct Metadata : testing_text::GgufMetadata {
  Metadata(const json& file, std::string_view pre) {
    const json& model = file["model"];
    std::vector<int64_t> types;
    const auto set = [&](const json& id, const std::string& name, int64_t type) {
      const auto index = id.get<size_t>();
      if (index >= tokens.size()) {
        tokens.resize(index + 1, "[UNUSED]");
        types.resize(index + 1, 5);
      }
      tokens[index] = name;
      types[index] = type;
    };
    for (const auto& [name, id] : model["vocab"].items()) set(id, name, 1);
    for (const json& token : file["added_tokens"]) {
      set(token["id"], token["content"], token["special"].get<bool>() ? 3 : 4);
    }
    for (const json& merge : model["merges"]) {
      merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
    }
    source.where = "f.gguf";
    source.model = "gpt2";
    source.pre = pre;
    source.token_type = types;
  }
};

Ids encode(const Tokenizer& tokenizer, const std::string& text,
           const std::vector<ByteRange>& markup = {}) {
  const auto ids = tokenizer.encode(text, markup);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  return ids.ok() ? *ids : Ids();
}

TEST(GgufTokenizer, IsThatOfTheTokenizerJson) {
  const json file = testing_text::read_json(ANYSLOT_MODEL_DIR "/tokenizer.json");
  Metadata metadata(file, "llama-bpe");
  metadata.source.bos_token_id = 0;
  metadata.source.eos_token_id = 4;
  const Tokenizer ours = must_create(metadata);
  const Tokenizer theirs = testing_text::demo_tokenizer();
  ASSERT_EQ(ours.vocab_size(), theirs.vocab_size());
  for (int32_t id = 0; id < theirs.vocab_size(); ++id) {
    EXPECT_EQ(ours.token_name(id), theirs.token_name(id)) << id;
    EXPECT_EQ(ours.token_bytes(id), theirs.token_bytes(id)) << id;
    EXPECT_EQ(ours.is_special(id), theirs.is_special(id)) << id;
  }
  EXPECT_EQ(ours.add_special_tokens(Ids{7}), theirs.add_special_tokens(Ids{7}));
  const uint32_t seed = 20;
  std::mt19937 random(seed);
  for (int i = 0; i < 2000; ++i) {
    const std::string text = testing_text::random_text(random, random() % 40) + "<|eot_id|>";
    EXPECT_EQ(encode(ours, text), encode(theirs, text)) << "seed " << seed << ": " << text;
    const std::vector<ByteRange> markup = {{0, text.size()}};
    EXPECT_EQ(encode(ours, text, markup), encode(theirs, text, markup)) << text;
  }
}

/// One token per byte, and for each name the words that it cuts a text into, seen by merges that
/// would join across them.
TEST(GgufTokenizer, NamesOfPreTokenizersCutAsTheirModelsDo) {
  const struct {
    const char* pre;
    size_t tokens_of_digits;   // of "1234", where every pair of digits merges
    size_t tokens_of_letters;  // of "aB", where the two merge
  } kNames[] = {{"llama-bpe", 3, 1}, {"llama3", 3, 1},    {"llama-v3", 3, 1},
                {"dbrx", 3, 1},      {"qwen2", 4, 1},     {"deepseek-r1-qwen", 4, 1},
                {"gpt-2", 2, 1},     {"olmo", 2, 1},      {"smollm", 4, 1},
                {"refact", 4, 1},    {"starcoder", 4, 1}, {"gpt-4o", 3, 2},
                {"tekken", 4, 2}};
  json file = testing_text::byte_tokenizer();
  for (const char left : std::string("1234")) {
    for (const char right : std::string("1234")) {
      testing_text::add_merge(file, std::string(1, left), std::string(1, right));
    }
  }
  testing_text::add_merge(file, "a", "B");
  for (const auto& name : kNames) {
    SCOPED_TRACE(name.pre);
    Metadata metadata(file, name.pre);
    metadata.source.add_bos_token = false;
    const Tokenizer tokenizer = must_create(metadata);
    EXPECT_EQ(encode(tokenizer, "1234").size(), name.tokens_of_digits);
    EXPECT_EQ(encode(tokenizer, "aB").size(), name.tokens_of_letters);
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, "a 12 <ü>\n"), false), "a 12 <ü>\n");
  }
}

TEST(GgufTokenizer, KindsOfTokens) {
  json file = testing_text::byte_tokenizer();
  file["added_tokens"] = {testing_text::added_token(256, "<s>"),
                          testing_text::added_token(257, "<user>", false)};
  Metadata metadata(file, "gpt-2");
  metadata.tokens.insert(metadata.tokens.end(), {"[PAD258]", "<unk>"});
  metadata.source.token_type.insert(metadata.source.token_type.end(), {5, 2});
  metadata.source.bos_token_id = 256;
  metadata.source.eos_token_id = 257;
  metadata.source.add_bos_token = true;
  metadata.source.add_eos_token = true;
  const Tokenizer tokenizer = must_create(metadata);
  EXPECT_TRUE(tokenizer.is_special(256));
  EXPECT_FALSE(tokenizer.is_special(257));
  EXPECT_TRUE(tokenizer.is_special(259));
  EXPECT_EQ(tokenizer.token_name(258), "") << "a gap between ids is no token";
  EXPECT_EQ(tokenizer.vocab_size(), 260);
  EXPECT_THAT(encode(tokenizer, "<user>a<s>", {{0, 10}}), ElementsAre(257, 'a', 256));
  EXPECT_EQ(encode(tokenizer, "<user>").size(), 6U) << "plain text holds no tokens";
  EXPECT_THAT(tokenizer.add_special_tokens(Ids{'a'}), ElementsAre(256, 'a', 257));
}

TEST(GgufTokenizer, AddsBosWhereTheNameSaysSoAndTheFileDoesNot) {
  json file = testing_text::byte_tokenizer();
  file["added_tokens"] = {testing_text::added_token(256, "<s>")};
  for (const bool llama : {true, false}) {
    Metadata metadata(file, llama ? "llama-bpe" : "qwen2");
    metadata.source.bos_token_id = 256;
    EXPECT_EQ(must_create(metadata).add_special_tokens(Ids{'a'}).size(), llama ? 2U : 1U);
  }
}

TEST(GgufTokenizer, QwensNamesComposeCharacters) {
  for (const std::string_view pre : {"qwen2", "deepseek-r1-qwen", "llama-bpe"}) {
    Metadata metadata(testing_text::byte_tokenizer(), pre);
    metadata.source.add_bos_token = false;
    const Tokenizer tokenizer = must_create(metadata);
    const bool composes = pre != "llama-bpe";
    EXPECT_EQ(tokenizer.decode(encode(tokenizer, "e\u0301"), false),
              composes ? "\u00e9" : "e\u0301")
        << pre;
  }
}

TEST(GgufTokenizer, APrefixSpace) {
  Metadata metadata(testing_text::byte_tokenizer(), "gpt-2");
  metadata.source.add_space_prefix = true;
  EXPECT_THAT(encode(must_create(metadata), "a"), ElementsAre(' ', 'a'));
}

struct Refusal {
  const char* name;
  void (*change)(Metadata& metadata);
  const char* message;
};

const Refusal kRefusals[] = {
    {"Model", [](Metadata& m) { m.source.model = "t5"; },
     "tokenizer.ggml.model: 't5' is not supported (supported: gpt2"},
    {"NoModel", [](Metadata& m) { m.source.model = ""; },
     "tokenizer.ggml.model: this key is missing"},
    {"Pre", [](Metadata& m) { m.source.pre = "poro-chat"; },
     "'poro-chat' is not supported (supported: llama-bpe, llama3"},
    {"NoPre", [](Metadata& m) { m.source.pre = ""; },
     "tokenizer.ggml.pre: this key is missing (supported"},
    {"NoTokens", [](Metadata& m) { m.tokens.clear(); },
     "tokenizer.ggml.tokens: this key is missing"},
    {"NoTypes", [](Metadata& m) { m.source.token_type.clear(); },
     "tokenizer.ggml.token_type: has 0 elements for 257 tokens"},
    {"ByteToken", [](Metadata& m) { m.source.token_type[65] = 6; },
     "tokenizer.ggml.token_type: [65] is 6, which is not supported"},
    {"StrangeType", [](Metadata& m) { m.source.token_type[65] = 257; },
     "tokenizer.ggml.token_type: [65] is 257"},
    {"Twice", [](Metadata& m) { m.tokens[65] = "B"; },
     "tokenizer.ggml.tokens: [66]: token 'B' has two ids, 65 and 66"},
    {"NoUtf8", [](Metadata& m) { m.tokens[65] = "\xFF"; },
     "tokenizer.ggml.tokens: [65]: the name of token 65 is not valid UTF-8"},
    {"MergeNoUtf8", [](Metadata& m) { m.merges = {"\xFF a"}; },
     "tokenizer.ggml.merges: [0] is not valid UTF-8"},
    {"MergeOfThree", [](Metadata& m) { m.merges = {"a b c"}; },
     R"(tokenizer.ggml.merges: [0] must be "left right")"},
    {"MergeUnknown", [](Metadata& m) { m.merges = {"a b"}; },
     "tokenizer.ggml.merges: [0]: 'ab' is no token of the model"},
    {"NoBos", [](Metadata& m) { m.source.add_bos_token = true; },
     "tokenizer.ggml.bos_token_id: names no token, but one is needed"},
    {"BosOutside",
     [](Metadata& m) {
       m.source.add_bos_token = true;
       m.source.bos_token_id = -1;
     },
     "tokenizer.ggml.bos_token_id: names no token"},
};

TEST(GgufTokenizer, RefusesByName) {
  json file = testing_text::byte_tokenizer();
  file["added_tokens"] = {testing_text::added_token(256, "<s>")};
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    Metadata metadata(file, "gpt-2");
    refusal.change(metadata);
    const Status status = metadata.create().status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(),
                testing::AllOf(testing::StartsWith("f.gguf: "), HasSubstr(refusal.message)));
  }
}

TEST(GgufTokenizer, TheFingerprintFollowsWhatTheTokenizerIs) {
  Metadata metadata(testing_text::byte_tokenizer(), "gpt-2");
  const Digest plain = must_create(metadata).fingerprint();
  EXPECT_EQ(must_create(metadata).fingerprint(), plain);
  metadata.source.pre = "qwen2";
  EXPECT_NE(must_create(metadata).fingerprint(), plain);
}

}  // namespace
}  // namespace anyslot
