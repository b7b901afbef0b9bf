#include "text/detokenizer.h"

#include <gtest/gtest.h>

#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using testing_text::added_token;
using testing_text::byte_tokenizer;
using testing_text::must_load;
using Ids = std::vector<int32_t>;

std::string stream(const Tokenizer& tokenizer, const Ids& ids) {
  StreamingDetokenizer detokenizer(tokenizer);
  std::string text;
  for (const int32_t id : ids) {
    const std::string piece = detokenizer.push(id);
    EXPECT_EQ(find_invalid_utf8(piece), std::nullopt);
    text += piece;
  }
  return text + detokenizer.flush();
}

/// Tokens for every string of up to `longest` bytes that stands in `bytes`.
nlohmann::json tokenizer_with_substrings(const std::string& bytes, size_t longest) {
  nlohmann::json file = byte_tokenizer();
  const auto written = [](std::string_view part) {
    std::string name;
    for (const char byte : part)
      append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
    return name;
  };
  for (size_t size = 2; size <= longest; ++size) {
    for (size_t at = 0; at + size <= bytes.size(); ++at) {
      const std::string_view part = std::string_view(bytes).substr(at, size);
      testing_text::add_merge(file, written(part.substr(0, size - 1)),
                              written(part.substr(size - 1)));
    }
  }
  return file;
}

// Every way of cutting the bytes into tokens gives the text of the whole.
TEST(StreamingDetokenizer, EverySplitGivesTheDecodedText) {
  const std::string r(kReplacementCharacter);
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a👩‍👧", "a👩‍👧"},      // emoji joined by U+200D
      {"e\u0301x\u0308", "e\u0301x\u0308"},  // combining marks
      {"\xF0\x9F\x99\xFFok", r + r + "ok"},  // a character that breaks off, a stray byte
      {"\xE6\x97日\x80", r + "日" + r},      // broken off, whole, stray
      {"\xED\xA0\x80\xC0\xAF\xF5x", r + r + r + r + r + r + "x"},  // surrogate, overlong, too large
      {"ok\xF0\x9F\x99", "ok" + r},                                // ends inside a character
  };
  for (const auto& [bytes, text] : cases) {
    const Tokenizer tokenizer = must_load(tokenizer_with_substrings(bytes, bytes.size()));
    for (uint32_t cuts = 0; cuts < 1U << (bytes.size() - 1); ++cuts) {
      Ids ids;
      size_t begin = 0;
      for (size_t end = 1; end <= bytes.size(); ++end) {
        if (end < bytes.size() && (cuts >> (end - 1) & 1) == 0) continue;
        std::string name;
        for (const char byte : bytes.substr(begin, end - begin)) {
          append_code_point(name, byte_to_alphabet(static_cast<uint8_t>(byte)));
        }
        ids.push_back(tokenizer.token_id(name).value());
        begin = end;
      }
      ASSERT_EQ(tokenizer.decode(ids, true), text) << cuts;
      ASSERT_EQ(stream(tokenizer, ids), text) << cuts;
    }
  }
}

TEST(StreamingDetokenizer, RandomBytesGiveTheDecodedText) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  const Tokenizer tokenizer = must_load(byte_tokenizer());
  const std::string_view likely = "\xE0\xED\xF0\xF4\x80\x90\x9F\xA0\xBF\xC2x";
  for (int trial = 0; trial < 20000; ++trial) {
    Ids ids;
    for (size_t i = random() % 12; i > 0; --i) {
      ids.push_back(static_cast<uint8_t>(random() % 4 == 0 ? random() % 256
                                                           : likely[random() % likely.size()]));
    }
    ASSERT_EQ(stream(tokenizer, ids), tokenizer.decode(ids, true));
  }
}

TEST(StreamingDetokenizer, SaysWhatIsCertainAtOnce) {
  const Tokenizer tokenizer = must_load(byte_tokenizer());
  StreamingDetokenizer detokenizer(tokenizer);
  EXPECT_EQ(detokenizer.push('a'), "a");
  EXPECT_EQ(detokenizer.push(0xE6), "");
  EXPECT_EQ(detokenizer.push(0x97), "");
  EXPECT_EQ(detokenizer.push(0xA5), "日");
  EXPECT_EQ(detokenizer.push(0xE6), "");
  EXPECT_EQ(detokenizer.push('b'), std::string(kReplacementCharacter) + "b");
  EXPECT_EQ(detokenizer.push(0xFF), kReplacementCharacter);
  EXPECT_EQ(detokenizer.push(0xF0), "");
  EXPECT_EQ(detokenizer.flush(), kReplacementCharacter);
  EXPECT_EQ(detokenizer.flush(), "");
}

TEST(StreamingDetokenizer, SkipsSpecialTokensEvenInsideACharacter) {
  nlohmann::json file = byte_tokenizer();
  file["added_tokens"] = nlohmann::json::array({added_token(300, "<s>")});
  const Tokenizer tokenizer = must_load(file);
  const Ids ids = {300, 0xC3, 300, 0xA9, 300, 'x', -1, 9999};
  EXPECT_EQ(stream(tokenizer, ids), "éx");
  EXPECT_EQ(tokenizer.decode(ids, true), "éx");
}

TEST(StreamingDetokenizer, DecodesTheGoldenAnswers) {
  const Tokenizer tokenizer = testing_text::demo_tokenizer();
  for (const auto& golden : testing_text::read_json(ANYSLOT_GOLDENS_DIR "/demo/cases.json")) {
    for (const char* run : {"full", "block"}) {
      const auto ids = golden[run]["greedy_token_ids"].get<Ids>();
      EXPECT_EQ(stream(tokenizer, ids), golden[run]["greedy_text"]);
    }
  }
  EXPECT_EQ(stream(tokenizer, {}), "");
}

}  // namespace
}  // namespace anyslot
