#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "text/detokenizer.h"
#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using testing_text::add_merge;
using testing_text::added_token;
using testing_text::must_load;
using testing_text::sentencepiece_tokenizer;
using Ids = std::vector<int32_t>;

constexpr int32_t kSpace = 259;
constexpr int32_t kA = 260;
constexpr int32_t byte_id(int byte) { return byte + 3; }

std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const Ids& ids) {
  StreamingDetokenizer detokenizer(tokenizer);
  std::vector<std::string> pieces;
  for (const int32_t id : ids) pieces.push_back(detokenizer.push(id));
  pieces.push_back(detokenizer.flush());
  return pieces;
}

TEST(SentencePiece, WhatIsNoTokenFallsBackToBytes) {
  json file = sentencepiece_tokenizer();
  EXPECT_THAT(*must_load(file).encode("a€"),
              ElementsAre(kSpace, kA, byte_id(0xE2), byte_id(0x82), byte_id(0xAC)));
  file["model"]["byte_fallback"] = false;
  EXPECT_THAT(*must_load(file).encode("€€a€"), ElementsAre(kSpace, 0, kA, 0));
  file["model"]["fuse_unk"] = false;
  EXPECT_THAT(*must_load(file).encode("€€a"), ElementsAre(kSpace, 0, 0, kA));
}

TEST(SentencePiece, MergesReachAcrossASpaceWhereTheVocabularySaysSo) {
  json file = sentencepiece_tokenizer();
  add_merge(file, "▁", "a");
  const int32_t space_a = must_load(file).token_id("▁a").value();
  EXPECT_THAT(*must_load(file).encode("a a"), ElementsAre(space_a, space_a));
  add_merge(file, "b", "▁");
  file["model"]["merges"] = json::array({json::array({"b", "▁"}), json::array({"▁", "a"})});
  const Tokenizer tokenizer = must_load(file);
  EXPECT_THAT(*tokenizer.encode("b a"), ElementsAre(kSpace, tokenizer.token_id("b▁").value(), kA));
}

TEST(SentencePiece, TheFirstSpaceGoes) {
  const Tokenizer tokenizer = must_load(sentencepiece_tokenizer());
  EXPECT_THAT(pieces_of(tokenizer, {1, kSpace, kA, kSpace, kA}),
              ElementsAre("", "", "a", " ", "a", ""));
  EXPECT_THAT(pieces_of(tokenizer, {kSpace, kSpace, kA}), ElementsAre("", " ", "a", ""));
  EXPECT_THAT(pieces_of(tokenizer, {kA, kSpace}), ElementsAre("a", " ", ""));
  EXPECT_EQ(tokenizer.token_bytes(kSpace), " ");
}

TEST(SentencePiece, ARunOfBytesIsTextWhenItEnds) {
  const Tokenizer tokenizer = must_load(sentencepiece_tokenizer());
  const std::string r(kReplacementCharacter);
  const Ids euro = {byte_id(0xE2), byte_id(0x82), byte_id(0xAC)};
  EXPECT_THAT(pieces_of(tokenizer, euro), ElementsAre("", "", "", "€"));
  EXPECT_THAT(pieces_of(tokenizer, {euro[0], euro[1], kA}), ElementsAre("", "", r + r + "a", ""));
  // As in Hugging Face's decoder, one bad byte spoils its run.
  EXPECT_THAT(pieces_of(tokenizer, {euro[0], euro[1], euro[2], byte_id(0xFF), kA}),
              ElementsAre("", "", "", "", r + r + r + r + "a", ""));
}

TEST(SentencePiece, SpecialTokensInContentStayText) {
  json file = sentencepiece_tokenizer();
  for (json& token : file["added_tokens"]) token["normalized"] = true;  // found as "▁<s>"
  const Tokenizer tokenizer = must_load(file);
  const std::string text = "<s>a</s>";
  const std::vector<ByteRange> begin = {{0, 3}};
  EXPECT_EQ(tokenizer.encode(text, begin)->front(), 1);
  for (const Ids& ids :
       {*tokenizer.encode(text), *tokenizer.encode(text, std::vector<ByteRange>{{0, 2}, {2, 8}})}) {
    for (const int32_t id : ids) EXPECT_FALSE(tokenizer.is_special(id));
    EXPECT_EQ(tokenizer.decode(ids, true), text);
  }
}

TEST(SentencePiece, SymbolsOfTheVocabularyAreText) {
  json file = sentencepiece_tokenizer();
  file["model"]["vocab"]["<h1>"] = 263;
  file["added_tokens"].push_back(added_token(263, "<h1>", false));
  file["added_tokens"].push_back(added_token(264, "<|user|>", false));
  const Tokenizer tokenizer = must_load(file);
  const Ids ids = *tokenizer.encode("a<h1>a<|user|>");
  EXPECT_THAT(Ids(ids.begin(), ids.begin() + 5), ElementsAre(kSpace, kA, 263, kSpace, kA));
  EXPECT_THAT(ids, ::testing::Not(::testing::Contains(264)));
}

}  // namespace
}  // namespace anyslot
