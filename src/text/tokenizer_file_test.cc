#include "text/tokenizer_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_text::added_token;
using testing_text::byte_tokenizer;
using testing_text::load_json;
using testing_text::TempFile;

TEST(TokenizerFile, AMissingFileIsNotFound) {
  const Status status = Tokenizer::load("/nonexistent/tokenizer.json").status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              HasSubstr("/nonexistent/tokenizer.json: cannot be read: No such file"));
  EXPECT_EQ(Tokenizer::load("/").status().code(), StatusCode::kNotFound);
}

TEST(TokenizerFile, BrokenJsonSaysFileAndPosition) {
  const TempFile broken("{\"version\": \"1.0\",\n\"model\" {}}");
  const Status status = Tokenizer::load(broken.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr(broken.path() + ": not valid JSON: line 2, column 9"));
  EXPECT_FALSE(Tokenizer::load(TempFile("").path()).ok());
  EXPECT_FALSE(Tokenizer::load(TempFile("{\"version\": \"\xFF\"}").path()).ok());
  EXPECT_FALSE(Tokenizer::load(TempFile("[1, 2]").path()).ok());
  EXPECT_FALSE(Tokenizer::load(TempFile(std::string(100'000, '[')).path()).ok());
}

struct Refusal {
  std::function<void(json&)> change;
  std::string message;
};

json decoders(const json& steps) { return {{"type", "Sequence"}, {"decoders", steps}}; }

// Each is the complete message behind the file's name.
const std::vector<Refusal>& refusals() {
  static const std::vector<Refusal> kList = {
      {[](json& f) { f["version"] = "2.0"; }, ".version: '2.0' is not supported (supported: 1.0)"},
      {[](json& f) {
         f["normalizer"] = {{"type", "Nmt"}};
       },
       ".normalizer.type: 'Nmt' is not supported (supported: Lowercase, NFC, NFD, NFKC, NFKD, "
       "Prepend, Replace, Strip, or a Sequence of them)"},
      {[](json& f) {
         f["normalizer"] = {{"type", "Replace"}, {"pattern", {{"String", ""}}}, {"content", "x"}};
       },
       ".normalizer.pattern.String: must not be empty"},
      {[](json& f) { f["normalizer"] = "NFC"; }, ".normalizer: must be an object, not string"},
      {[](json& f) { f["extra"] = 1; }, ".extra: a field of this name is not supported"},
      {[](json& f) { f.erase("model"); }, ".model: this field is missing"},
      {[](json& f) { f["decoder"] = nullptr; }, ".decoder: this field is missing"},
      {[](json& f) { f["decoder"]["type"] = "WordPiece"; },
       ".decoder.type: 'WordPiece' is not supported (supported: ByteLevel, ByteFallback, Fuse, "
       "Metaspace, Replace, Strip, or a Sequence of them)"},
      {[](json& f) {
         f["decoder"] = decoders({{{"type", "Fuse"}}, {{"type", "ByteFallback"}}});
       },
       ".decoder.decoders[1].type: 'ByteFallback' is not supported at this place: ByteLevel stands "
       "alone, and other steps come in the order Replace, Strip or Metaspace, ByteFallback, Fuse, "
       "Strip"},
      {[](json& f) {
         f["decoder"] =
             decoders({{{"type", "Fuse"}},
                       {{"type", "Strip"}, {"content", " "}, {"start", 0}, {"stop", 1}}});
       },
       ".decoder.decoders[1].stop: must be 0 behind Fuse: the end of a text is not known while it "
       "grows"},
      {[](json& f) { f["pre_tokenizer"]["type"] = "BertPreTokenizer"; },
       ".pre_tokenizer.type: 'BertPreTokenizer' is not supported (supported: ByteLevel, Digits, "
       "Metaspace, Punctuation, Split, Whitespace, WhitespaceSplit, or a Sequence of them)"},
      {[](json& f) {
         f["pre_tokenizer"] = {{"type", "Metaspace"}, {"replacement", "ab"}};
       },
       ".pre_tokenizer.replacement: must be one character"},
      {[](json& f) { f["pre_tokenizer"] = nullptr; },
       ".model.unk_token: must be given: without it and without byte_fallback characters that are "
       "not in the vocabulary would be left out"},
      {[](json& f) { f["pre_tokenizer"]["new_option"] = true; },
       ".pre_tokenizer.new_option: a field of this name is not supported"},
      {[](json& f) {
         f["pre_tokenizer"] = {{"type", "Sequence"},
                               {"pretokenizers", {f["pre_tokenizer"], f["pre_tokenizer"]}}};
       },
       ".pre_tokenizer.pretokenizers[1]: a step behind ByteLevel ('ByteLevel') is not supported"},
      {[](json& f) {
         f["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", {{{"type", "Sequence"}}}}};
       },
       ".pre_tokenizer.pretokenizers[0].type: 'Sequence' is not supported (supported: ByteLevel, "
       "Digits, Metaspace, Punctuation, Split, Whitespace, WhitespaceSplit, or a Sequence of "
       "them)"},
      {[](json& f) { f["model"]["type"] = "Unigram"; },
       ".model.type: 'Unigram' is not supported (supported: BPE)"},
      {[](json& f) { f["model"]["dropout"] = 0.1; },
       ".model.dropout: must be null: random merges are not supported"},
      {[](json& f) {
         f["pre_tokenizer"] = nullptr;
         f["model"]["byte_fallback"] = true;
       },
       ".model.vocab: '<0x00>', the token of byte 0, is missing"},
      {[](json& f) {
         f["pre_tokenizer"] = nullptr;
         f["model"]["unk_token"] = "<unk>";
       },
       ".model.unk_token: '<unk>' is not in model.vocab"},
      {[](json& f) { f["model"]["type"] = "WordPiece"; },
       ".model.type: 'WordPiece' is not supported (supported: BPE)"},
      {[](json& f) { f["model"]["end_of_word_suffix"] = "</w>"; },
       ".model.end_of_word_suffix: must be null: marked subwords are not supported"},
      {[](json& f) { f["model"]["continuing_subword_prefix"] = "##"; },
       ".model.continuing_subword_prefix: must be null: marked subwords are not supported"},
      {[](json& f) { f["model"]["other"] = 1; },
       ".model.other: a field of this name is not supported"},
      {[](json& f) { f["model"].erase("merges"); }, ".model.merges: this field is missing"},
      {[](json& f) { f["model"]["vocab"] = json::array(); },
       ".model.vocab: must be an object, not array"},
      {[](json& f) { f["model"]["vocab"]["zz"] = "7"; },
       ".model.vocab: the id of 'zz' must be a whole number"},
      {[](json& f) { f["model"]["vocab"]["zz"] = 97; },
       ".model.vocab: tokens 'a' and 'zz' have the same id 97"},
      {[](json& f) { f["model"]["vocab"]["zz"] = -1; },
       ".model.vocab: token 'zz' has the id -1; ids must lie between 0 and 2097151"},
      {[](json& f) { f["model"]["vocab"]["zz"] = 1ULL << 63; },
       ".model.vocab: token 'zz' has the id -9223372036854775808; ids must lie between 0 and "
       "2097151"},
      {[](json& f) { f["model"]["vocab"].erase("a"); },
       ".model.vocab: 'a', the token of byte 97, is missing"},
      {[](json& f) { f["model"]["merges"] = {"a"}; },
       R"(.model.merges[0]: must be "left right" or ["left", "right"])"},
      {[](json& f) { f["model"]["merges"] = {"a b c"}; },
       R"(.model.merges[0]: must be "left right" or ["left", "right"])"},
      {[](json& f) {
         f["model"]["merges"] = json::array({json::array({"a", 1})});
       },
       R"(.model.merges[0]: must be "left right" or ["left", "right"])"},
      {[](json& f) { f["model"]["merges"] = {"a b"}; },
       ".model.merges[0]: 'ab' is no token of the model"},
      {[](json& f) { f["model"]["merges"] = {"a bb"}; },
       ".model.merges[0]: 'bb' is no token of the model"},
      {[](json& f) { f["added_tokens"] = 1; }, ".added_tokens: must be an array"},
      {[](json& f) { f["added_tokens"] = {added_token(300, "")}; },
       ".added_tokens[0].content: must not be empty"},
      {[](json& f) { f["added_tokens"] = {added_token(97, "<s>")}; },
       ".added_tokens[0]: tokens 'a' and '<s>' have the same id 97"},
      {[](json& f) { f["added_tokens"] = {added_token(300, "a")}; },
       ".added_tokens[0]: token 'a' has two ids, 97 and 300"},
      {[](json& f) { f["added_tokens"] = {added_token(97, "a")}; },
       ".model.vocab: 'a' is the token of a byte and cannot be special"},
      {[](json& f) {
         f["added_tokens"] = {{{"content", "<s>"}}};
       },
       ".added_tokens[0].id: this field is missing"},
      {[](json& f) {
         f["post_processor"] = {{"type", "BertProcessing"}};
       },
       ".post_processor.type: 'BertProcessing' is not supported (supported: a Sequence of "
       "ByteLevel and TemplateProcessing)"},
  };
  return kList;
}

TEST(TokenizerFile, WhatIsUnsupportedIsRefusedByName) {
  for (const Refusal& refusal : refusals()) {
    json file = byte_tokenizer();
    refusal.change(file);
    const TempFile temp(file.dump());
    const Status status = Tokenizer::load(temp.path()).status();
    ASSERT_FALSE(status.ok()) << refusal.message;
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_EQ(status.message(), temp.path() + refusal.message);
  }
}

TEST(TokenizerFile, AnAddedTokenThatCannotBeNormalizedIsNamed) {
  json file = byte_tokenizer();
  file["normalizer"] = {{"type", "Replace"}, {"pattern", {{"Regex", "(a+)+$"}}}, {"content", "x"}};
  const std::string content = std::string(60, 'a') + "b";
  json token = added_token(300, content);
  token["normalized"] = true;
  file["added_tokens"] = {token};
  const TempFile temp(file.dump());
  const Status status = Tokenizer::load(temp.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), testing::StartsWith(temp.path() + ".added_tokens: '" + content +
                                                    "': the regular expression"));
}

json split_step(const json& pattern, const std::string& behavior, bool invert) {
  return {{"type", "Split"}, {"pattern", pattern}, {"behavior", behavior}, {"invert", invert}};
}

TEST(TokenizerFile, SplitsThatCannotBeRunAreRefused) {
  const std::vector<std::pair<json, std::string>> cases = {
      {split_step({{"Regex", "a"}}, "Kept", false),
       "[0].behavior: 'Kept' is not supported (supported: Isolated, Removed, MergedWithPrevious, "
       "MergedWithNext, Contiguous)"},
      {split_step({{"Text", "a"}}, "Isolated", false), "[0].pattern.Regex: this field is missing"},
      {split_step({{"String", ""}}, "Isolated", false), "[0].pattern.String: must not be empty"},
      {split_step({{"Regex", "(a"}}, "Isolated", false),
       "[0].pattern: the regular expression cannot be compiled: missing closing parenthesis"},
      {split_step({{"Regex", "\\w"}}, "Isolated", false),
       "[0].pattern: regular expressions with \\w are not supported"},
  };
  for (const auto& [step, message] : cases) {
    json file = byte_tokenizer();
    file["pre_tokenizer"] = {{"type", "Sequence"},
                             {"pretokenizers", {step, file["pre_tokenizer"]}}};
    const auto tokenizer = load_json(file);
    ASSERT_FALSE(tokenizer.ok()) << message;
    EXPECT_THAT(tokenizer.status().message(), HasSubstr(".pre_tokenizer.pretokenizers" + message));
  }
}

// They say how training cut and filled up its texts.
TEST(TokenizerFile, TruncationAndPaddingAreNotOurs) {
  json file = byte_tokenizer();
  file["truncation"] = {{"max_length", 1}};
  file["padding"] = {{"strategy", {{"Fixed", 9}}}};
  EXPECT_THAT(*testing_text::must_load(file).encode("abc"), ElementsAre('a', 'b', 'c'));
}

json template_processor() {
  json special_token = {{"SpecialToken", {{"id", "<s>"}, {"type_id", 0}}}};
  json sequence = {{"Sequence", {{"id", "A"}, {"type_id", 0}}}};
  json end = {{"SpecialToken", {{"id", "<e>"}, {"type_id", 0}}}};
  return {{"type", "TemplateProcessing"},
          {"single", json::array({special_token, sequence, end})},
          {"pair", json::array()},
          {"special_tokens",
           {{"<s>", {{"id", "<s>"}, {"ids", {300}}, {"tokens", {"<s>"}}}},
            {"<e>", {{"id", "<e>"}, {"ids", {301, 300}}, {"tokens", {"<e>", "<s>"}}}}}}};
}

json tokenizer_with(const json& post_processor) {
  json file = byte_tokenizer();
  file["added_tokens"] = {added_token(300, "<s>"), added_token(301, "<e>")};
  file["post_processor"] = post_processor;
  return file;
}

TEST(TokenizerFile, TheTemplateStandsAroundTheSequence) {
  const std::vector<int32_t> ids = {7, 8};
  EXPECT_THAT(testing_text::must_load(tokenizer_with(template_processor())).add_special_tokens(ids),
              ElementsAre(300, 7, 8, 301, 300));
  EXPECT_THAT(testing_text::must_load(tokenizer_with(nullptr)).add_special_tokens(ids),
              ElementsAre(7, 8));
}

TEST(TokenizerFile, BadTemplatesAreRefused) {
  const std::vector<Refusal> cases = {
      {[](json& p) { p["single"].erase(1); },
       ".post_processor.single: must hold the sequence exactly once"},
      {[](json& p) { p["single"].push_back(p["single"][1]); },
       ".post_processor.single: must hold the sequence exactly once"},
      {[](json& p) { p["special_tokens"].erase("<e>"); },
       ".post_processor.special_tokens: '<e>' is missing"},
      {[](json& p) { p["special_tokens"]["<e>"]["ids"] = {302}; },
       ".post_processor.special_tokens.<e>.ids: no token has the id 302"},
      {[](json& p) { p["special_tokens"]["<e>"]["ids"] = {"x"}; },
       ".post_processor.special_tokens.<e>.ids: no token has the id \"x\""},
      {[](json& p) { p["single"][0] = "<s>"; },
       ".post_processor.single[0]: must be an object, not string"},
      {[](json& p) { p.erase("single"); }, ".post_processor.single: this field is missing"},
  };
  for (const Refusal& refusal : cases) {
    json processor = template_processor();
    refusal.change(processor);
    const TempFile temp(tokenizer_with(processor).dump());
    EXPECT_EQ(Tokenizer::load(temp.path()).status().message(), temp.path() + refusal.message);
  }
}

}  // namespace
}  // namespace anyslot
