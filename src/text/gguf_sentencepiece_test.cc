// GGUF files whose tokenizer is the BPE of SentencePiece: pieces with scores, and no merges.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "text/test_gguf_tokenizer.h"
#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_text::must_create;
using Ids = std::vector<int32_t>;

constexpr int64_t kNormal = 1;
constexpr int64_t kUnknown = 2;
constexpr int64_t kControl = 3;
constexpr int64_t kUserDefined = 4;
constexpr int64_t kUnused = 5;
constexpr int64_t kByte = 6;

constexpr int32_t kFirstByte = 3;
constexpr int32_t kSpace = kFirstByte + 256;

/// As Llama 2 has it: <unk>, <s>, </s>, the bytes, then what a test adds.
struct Metadata : testing_text::GgufMetadata {
  explicit Metadata(const std::string& characters = "abc") {
    source.where = "f.gguf";
    source.model = "llama";
    source.bos_token_id = 1;
    source.eos_token_id = 2;
    add("<unk>", 0, kUnknown);
    add("<s>", 0, kControl);
    add("</s>", 0, kControl);
    for (int byte = 0; byte < 256; ++byte) add(testing_text::byte_name(byte), 0, kByte);
    add("▁", -1000);
    for (const char character : characters) add(std::string(1, character), -1000);
  }

  int32_t add(const std::string& token, double score, int64_t type = kNormal) {
    tokens.push_back(token);
    source.scores.push_back(score);
    source.token_type.push_back(type);
    return static_cast<int32_t>(tokens.size()) - 1;
  }
};

std::vector<std::string> names_of(const Tokenizer& tokenizer, const std::string& text,
                                  const std::vector<ByteRange>& markup = {}) {
  const auto ids = tokenizer.encode(text, markup);
  EXPECT_TRUE(ids.ok()) << ids.status().message();
  std::vector<std::string> names;
  for (const int32_t id : ids.ok() ? *ids : Ids()) names.emplace_back(tokenizer.token_name(id));
  return names;
}

TEST(GgufSentencePiece, TheHighestScoreIsJoinedFirst) {
  for (const bool right : {false, true}) {
    Metadata metadata;
    metadata.source.add_space_prefix = false;
    metadata.add("ab", right ? -2 : -1);
    metadata.add("bc", right ? -1 : -2);
    const std::vector<std::string> expected =
        right ? std::vector<std::string>{"a", "bc"} : std::vector<std::string>{"ab", "c"};
    EXPECT_EQ(names_of(must_create(metadata), "abc"), expected);
  }
}

TEST(GgufSentencePiece, OfEqualScoresTheLeftmost) {
  Metadata metadata;
  metadata.source.add_space_prefix = false;
  metadata.add("bc", -1);
  metadata.add("ab", -1);
  metadata.add("aa", -2);
  EXPECT_THAT(names_of(must_create(metadata), "abc"), ElementsAre("ab", "c"));
  EXPECT_THAT(names_of(must_create(metadata), "aaa"), ElementsAre("aa", "a"));
}

/// The rule as it is written down: of all neighbours that form a piece, those of the best score,
/// and of these the leftmost.
std::vector<std::string> joined(const Metadata& metadata, const std::string& text) {
  const auto score = [&](const std::string& piece) {
    const auto found = std::ranges::find(metadata.tokens, piece);
    return found == metadata.tokens.end()
               ? -std::numeric_limits<double>::infinity()
               : metadata.source.scores[static_cast<size_t>(found - metadata.tokens.begin())];
  };
  std::vector<std::string> pieces;
  for (const char character : text) pieces.emplace_back(1, character);
  while (true) {
    double best = -std::numeric_limits<double>::infinity();
    size_t at = 0;
    for (size_t i = 0; i + 1 < pieces.size(); ++i) {
      if (const double here = score(pieces[i] + pieces[i + 1]); here > best) {
        best = here;
        at = i;
      }
    }
    if (best == -std::numeric_limits<double>::infinity()) return pieces;
    pieces[at] += pieces[at + 1];
    pieces.erase(pieces.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  }
}

TEST(GgufSentencePiece, RandomVocabulariesWithTies) {
  const uint32_t seed = 21;
  std::mt19937 random(seed);
  const auto letters = [&](size_t length) {
    std::string text;
    while (text.size() < length) text += "abc"[random() % 3];
    return text;
  };
  for (int vocabulary = 0; vocabulary < 60; ++vocabulary) {
    Metadata metadata;
    metadata.source.add_space_prefix = false;
    for (int i = 0; i < 25; ++i) {
      const std::string piece = letters(2 + random() % 4);
      if (std::ranges::count(metadata.tokens, piece) > 0) continue;
      metadata.add(piece, -1.0 - static_cast<double>(random() % 6));
    }
    const Tokenizer tokenizer = must_create(metadata);
    for (int i = 0; i < 20; ++i) {
      const std::string text = letters(1 + random() % 90);
      EXPECT_EQ(names_of(tokenizer, text), joined(metadata, text))
          << "seed " << seed << ": " << text;
    }
  }
}

TEST(GgufSentencePiece, SpacesAndEndsAreThoseOfTheKind) {
  Metadata metadata;
  metadata.add("▁a", -1);
  const Tokenizer tokenizer = must_create(metadata);
  EXPECT_THAT(names_of(tokenizer, "a  ab"), ElementsAre("▁a", "▁", "▁a", "b"));
  EXPECT_EQ(tokenizer.decode(*tokenizer.encode("a  ab"), true), "a  ab");
  EXPECT_THAT(tokenizer.add_special_tokens(Ids{7}), ElementsAre(1, 7));

  metadata.source.add_space_prefix = false;
  metadata.source.add_bos_token = false;
  metadata.source.add_eos_token = true;
  const Tokenizer plain = must_create(metadata);
  EXPECT_THAT(names_of(plain, "a a"), ElementsAre("a", "▁a"));
  EXPECT_EQ(plain.decode(*plain.encode(" a"), true), " a");
  EXPECT_THAT(plain.add_special_tokens(Ids{7}), ElementsAre(7, 2));
}

TEST(GgufSentencePiece, WhatIsNoPieceIsBytesOrUnknown) {
  Metadata metadata;
  metadata.source.add_space_prefix = false;
  EXPECT_THAT(*must_create(metadata).encode("é"),
              ElementsAre(kFirstByte + 0xC3, kFirstByte + 0xA9));
  for (int32_t byte = 0; byte < 256; ++byte)
    metadata.source.token_type[kFirstByte + byte] = kUnused;
  EXPECT_THAT(*must_create(metadata).encode("éé"), ElementsAre(0));
  metadata.source.unknown_token_id = 2;
  EXPECT_THAT(*must_create(metadata).encode("é"), ElementsAre(2));
}

TEST(GgufSentencePiece, KindsOfTokens) {
  Metadata metadata("abc<>us");
  metadata.source.add_space_prefix = false;
  metadata.add("<s", -3);
  metadata.add("<u>", 0, kUserDefined);
  metadata.add("us", -2);
  metadata.add("<a>", 0, kUserDefined);
  metadata.add("[PAD]", 0, kUnused);
  const Tokenizer tokenizer = must_create(metadata);
  EXPECT_THAT(names_of(tokenizer, "a<s>"), ElementsAre("a", "<s", ">"))
      << "no text is joined to a control token";
  EXPECT_THAT(names_of(tokenizer, "a<s>", {{0, 4}}), ElementsAre("a", "<s>"));
  EXPECT_THAT(names_of(tokenizer, "a<u>us"), ElementsAre("a", "<u>", "us"))
      << "a symbol of the vocabulary is text";
  EXPECT_THAT(names_of(tokenizer, "<a>"), ElementsAre("<", "a", ">"))
      << "what was added behind the vocabulary may be a mark";
  EXPECT_THAT(names_of(tokenizer, "<a>", {{0, 3}}), ElementsAre("<a>"));
  EXPECT_TRUE(tokenizer.is_special(1));
  EXPECT_FALSE(tokenizer.is_special(*tokenizer.token_id("<a>")));
  EXPECT_FALSE(tokenizer.token_id("[PAD]").has_value());
}

TEST(GgufSentencePiece, Phi3sTokensTakeWhiteSpaceAlong) {
  Metadata metadata;
  metadata.source.add_space_prefix = false;
  metadata.add("<|user|>", -1000, kControl);
  metadata.add("<|endoftext|>", -1000, kControl);
  const std::string text = "<|user|>\na<|endoftext|>\na";
  const std::vector<ByteRange> markup = {{0, text.size()}};
  EXPECT_THAT(names_of(must_create(metadata), text, markup),
              ElementsAre("<|user|>", "<0x0A>", "a", "<|endoftext|>", "<0x0A>", "a"));
  metadata.source.of_phi3 = true;
  EXPECT_THAT(names_of(must_create(metadata), text, markup),
              ElementsAre("<|user|>", "a", "<|endoftext|>", "<0x0A>", "a"));
}

TEST(GgufSentencePiece, MergesOfTheFileCount) {
  Metadata metadata;
  metadata.source.add_space_prefix = false;
  metadata.add("ab", -1);
  metadata.add("bc", -1);
  metadata.merges = {"b c", "a b"};
  EXPECT_THAT(names_of(must_create(metadata), "abc"), ElementsAre("a", "bc"));
}

struct Refusal {
  const char* name;
  void (*change)(Metadata& metadata);
  const char* message;
};

const Refusal kRefusals[] = {
    {"NoScores", [](Metadata& m) { m.source.scores.clear(); },
     "tokenizer.ggml.scores: has 0 elements for 264 tokens"},
    {"NoNumber", [](Metadata& m) { m.source.scores[7] = std::numeric_limits<double>::quiet_NaN(); },
     "tokenizer.ggml.scores: [7] is no finite number"},
    {"AllTheSame",
     [](Metadata& m) {
       m.source.scores.assign(m.source.scores.size(), -1000);
       m.add("bc", -1000);
     },
     "tokenizer.ggml.scores: are all the same, so that nothing says which pieces are joined first"},
    {"LongPiece", [](Metadata& m) { m.add(std::string(513, 'a'), -5); },
     "tokenizer.ggml.scores: token 264 has 513 bytes; pieces may have 512"},
    {"NoByte",
     [](Metadata& m) {
       m.source.token_type[0] = kControl;
       m.source.token_type[kFirstByte + 0x41] = kUnused;
     },
     "'<0x41>', the token of byte 65, is missing"},
    {"UnknownOutside", [](Metadata& m) { m.source.unknown_token_id = 264; },
     "tokenizer.ggml.unknown_token_id: names no token, but one is needed"},
    {"NoBos", [](Metadata& m) { m.source.bos_token_id.reset(); },
     "tokenizer.ggml.bos_token_id: names no token"},
    {"EmptyMark", [](Metadata& m) { m.add("", 0, kControl); },
     "tokenizer.ggml.tokens: [264] is empty"},
    {"StrangeType", [](Metadata& m) { m.source.token_type[9] = 7; },
     "tokenizer.ggml.token_type: [9] is 7, which is not supported"},
};

TEST(GgufSentencePiece, RefusesByName) {
  for (const Refusal& refusal : kRefusals) {
    SCOPED_TRACE(refusal.name);
    Metadata metadata;
    metadata.add("ab", -1);
    refusal.change(metadata);
    const Status status = metadata.create().status();
    EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(status.message(),
                AllOf(testing::StartsWith("f.gguf: "), HasSubstr(refusal.message)));
  }
}

/// Each piece can be cut everywhere, which is as many merges as there are bytes.
TEST(GgufSentencePiece, VocabulariesThatMultiplyAreRefused) {
  Metadata metadata;
  for (const char letter : std::string("defghijklmnopqrstu")) {
    for (size_t length = 1; length <= 512; ++length) {
      metadata.add(std::string(length, letter), -static_cast<double>(length));
    }
  }
  EXPECT_THAT(metadata.create().status().message(),
              HasSubstr("there are more than 2097152 ways to join pieces to others"));
}

TEST(GgufSentencePiece, TheFingerprintFollowsTheScores) {
  Metadata metadata;
  metadata.add("ab", -1);
  metadata.add("bc", -2);
  const Digest plain = must_create(metadata).fingerprint();
  EXPECT_EQ(must_create(metadata).fingerprint(), plain);
  metadata.source.scores.back() = -0.5;
  EXPECT_NE(must_create(metadata).fingerprint(), plain);
}

}  // namespace
}  // namespace anyslot
