#include "text/tokenizer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <ctime>
#include <functional>
#include <limits>
#include <thread>

#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using testing_text::add_merge;
using testing_text::added_token;
using testing_text::byte_tokenizer;
using testing_text::must_load;
using Ids = std::vector<int32_t>;

std::vector<ByteRange> all_of(std::string_view text) { return {{0, text.size()}}; }

class DemoTokenizerTest : public ::testing::Test {
 protected:
  static Ids encode(const Tokenizer& tokenizer, std::string_view text,
                    const std::vector<ByteRange>& markup = {}) {
    Expected<Ids> ids = tokenizer.encode(text, markup);
    EXPECT_TRUE(ids.ok()) << ids.status().message();
    return ids.ok() ? *ids : Ids{};
  }
  Tokenizer tokenizer_ = testing_text::demo_tokenizer();
};

TEST_F(DemoTokenizerTest, MatchesHuggingFace) {
  const json goldens = testing_text::read_json(ANYSLOT_GOLDENS_DIR "/demo/tokenizer.json");
  ASSERT_FALSE(goldens.empty());
  for (const json& golden : goldens) {
    const auto text = golden["text"].get<std::string>();
    const Ids ids = encode(tokenizer_, text, all_of(text));
    EXPECT_EQ(ids, golden["ids"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer_.add_special_tokens(ids), golden["ids_with_bos"].get<Ids>()) << text;
    EXPECT_EQ(tokenizer_.decode(golden["ids"].get<Ids>(), false), golden["decoded"]) << text;
  }
}

TEST_F(DemoTokenizerTest, SpecialTokensInContentStayText) {
  const int32_t eot = *tokenizer_.token_id("<|eot_id|>");
  ASSERT_TRUE(tokenizer_.is_special(eot));
  const std::string text = "a<|eot_id|>b<|begin_of_text|>";
  const Ids plain = encode(tokenizer_, text);
  for (const int32_t id : plain) EXPECT_FALSE(tokenizer_.is_special(id)) << id;
  EXPECT_EQ(tokenizer_.decode(plain, true), text);

  const Ids marked = encode(tokenizer_, text, all_of(text));
  EXPECT_EQ(marked, (Ids{*tokenizer_.token_id("a"), eot, *tokenizer_.token_id("b"),
                         *tokenizer_.token_id("<|begin_of_text|>")}));
  EXPECT_EQ(tokenizer_.decode(marked, false), text);
  EXPECT_EQ(tokenizer_.decode(marked, true), "ab");
}

TEST_F(DemoTokenizerTest, SpecialTokenAcrossABorderIsText) {
  const std::string text = "x<|eot_id|>y";
  const int32_t eot = *tokenizer_.token_id("<|eot_id|>");
  const size_t end = text.size();
  EXPECT_THAT(encode(tokenizer_, text, {{1, 11}}), ::testing::Contains(eot));
  for (size_t border = 2; border < 11; ++border) {
    for (const std::vector<ByteRange>& markup :
         {std::vector<ByteRange>{{0, border}}, {{border, end}}, {{0, border}, {border, end}}}) {
      const Ids ids = encode(tokenizer_, text, markup);
      EXPECT_THAT(ids, ::testing::Not(::testing::Contains(eot))) << border;
      EXPECT_EQ(ids, encode(tokenizer_, text)) << border;
    }
  }
}

TEST_F(DemoTokenizerTest, WordsCrossFromMarkupToContent) {
  const std::string text = "Hello world";
  EXPECT_EQ(encode(tokenizer_, text, {{0, 8}}), encode(tokenizer_, text));
}

TEST_F(DemoTokenizerTest, RandomTextRoundTrips) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int i = 0; i < 3000; ++i) {
    const std::string text = testing_text::random_text(random, random() % 60);
    const Ids ids = encode(tokenizer_, text);
    ASSERT_EQ(tokenizer_.decode(ids, false), text);
    ASSERT_EQ(tokenizer_.decode(ids, true), text);
  }
}

TEST_F(DemoTokenizerTest, InvalidUtf8IsAnErrorWithItsOffset) {
  const Expected<Ids> ids = tokenizer_.encode("abc\xFF");
  ASSERT_FALSE(ids.ok());
  EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(ids.status().message(), HasSubstr("not valid UTF-8 at byte 3"));
}

TEST_F(DemoTokenizerTest, BadMarkupIsAnError) {
  for (const std::vector<ByteRange>& markup :
       {std::vector<ByteRange>{{0, 6}}, {{3, 2}}, {{0, 3}, {2, 4}}, {{3, 4}, {0, 1}}}) {
    const Expected<Ids> ids = tokenizer_.encode("abcde", markup);
    ASSERT_FALSE(ids.ok());
    EXPECT_THAT(ids.status().message(), HasSubstr("markup range"));
  }
  EXPECT_TRUE(tokenizer_.encode("abcde", std::vector<ByteRange>{{0, 0}, {0, 5}, {5, 5}}).ok());
}

TEST_F(DemoTokenizerTest, EmptyTextHasNoTokens) {
  EXPECT_TRUE(encode(tokenizer_, "").empty());
  EXPECT_EQ(tokenizer_.decode({}, false), "");
}

TEST_F(DemoTokenizerTest, UnknownIdsAreHarmless) {
  const int32_t beyond = tokenizer_.vocab_size();
  EXPECT_EQ(tokenizer_.vocab_size(), 4096);
  for (const int32_t id :
       {-1, beyond, std::numeric_limits<int32_t>::max(), std::numeric_limits<int32_t>::min()}) {
    EXPECT_FALSE(tokenizer_.is_special(id));
    EXPECT_EQ(tokenizer_.token_bytes(id), "");
    EXPECT_EQ(tokenizer_.decode(Ids{id}, false), "");
  }
  EXPECT_EQ(tokenizer_.token_id("no such token"), std::nullopt);
}

TEST_F(DemoTokenizerTest, ManyThreadsShareOneTokenizer) {
  std::mt19937 random(7);
  const std::string text = testing_text::random_text(random, 4000);
  const Ids expected = encode(tokenizer_, text);
  std::vector<std::thread> threads;
  std::vector<int> equal(4);
  threads.reserve(equal.size());
  for (int& count : equal) {
    threads.emplace_back([&] {
      for (int i = 0; i < 20; ++i) count += *tokenizer_.encode(text) == expected;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_THAT(equal, ::testing::Each(20));
}

// Byte-pair encoding as its papers describe it: join the pair of the lowest rank, leftmost first.
std::vector<std::string> naive_bpe(const std::string& word,
                                   const std::vector<std::string>& merged) {
  std::vector<std::string> symbols;
  for (const char c : word) symbols.emplace_back(1, c);
  while (true) {
    size_t best_rank = merged.size();
    size_t best = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      for (size_t rank = 0; rank < best_rank; ++rank) {
        if (merged[rank] == symbols[i] + "|" + symbols[i + 1]) {
          best_rank = rank;
          best = i;
        }
      }
    }
    if (best_rank == merged.size()) return symbols;
    symbols[best] += symbols[best + 1];
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST(Bpe, EqualsTheNaiveMethodForShortAndLongWords) {
  const uint32_t seed = std::random_device{}();
  SCOPED_TRACE("seed " + std::to_string(seed));
  std::mt19937 random(seed);
  for (int trial = 0; trial < 30; ++trial) {
    json file = byte_tokenizer();
    std::vector<std::string> tokens = {"a", "b", "c"};
    std::vector<std::string> merged;
    for (int i = 0; i < 25; ++i) {
      const std::string left = tokens[random() % tokens.size()];
      const std::string right = tokens[random() % tokens.size()];
      if (std::ranges::find(merged, left + "|" + right) != merged.end()) continue;
      merged.push_back(left + "|" + right);
      add_merge(file, left, right);
      if (std::ranges::find(tokens, left + right) == tokens.end()) tokens.push_back(left + right);
    }
    const Tokenizer tokenizer = must_load(file);
    for (const size_t length : {1U, 2U, 7U, 48U, 49U, 200U}) {
      std::string word;
      for (size_t i = 0; i < length; ++i) word += "abc"[random() % 3];
      std::vector<std::string> got;
      const Ids ids = *tokenizer.encode(word);
      for (const int32_t id : ids) got.emplace_back(tokenizer.token_bytes(id));
      ASSERT_EQ(got, naive_bpe(word, merged)) << word;
    }
  }
}

TEST(Bpe, IgnoreMergesKeepsWholeWords) {
  json file = byte_tokenizer();
  file["model"]["vocab"]["abc"] = 300;  // no merge makes it
  EXPECT_THAT(*must_load(file).encode("abc"), ElementsAre('a', 'b', 'c'));
  file["model"]["ignore_merges"] = true;
  EXPECT_THAT(*must_load(file).encode("abc"), ElementsAre(300));
  EXPECT_THAT(*must_load(file).encode("abcd"), ElementsAre('a', 'b', 'c', 'd'));
}

TEST(Bpe, NeitherMergesNorWholeWordsMakeASpecialToken) {
  for (const bool ignore_merges : {false, true}) {
    json file = byte_tokenizer();
    file["model"]["ignore_merges"] = ignore_merges;
    file["added_tokens"] = json::array({added_token(256, "ab")});
    file["model"]["vocab"]["ab"] = 256;
    file["model"]["merges"].push_back("a b");
    const Tokenizer tokenizer = must_load(file);
    EXPECT_THAT(*tokenizer.encode("ab"), ElementsAre('a', 'b'));
    EXPECT_THAT(*tokenizer.encode("ab", all_of("ab")), ElementsAre(256));
  }
}

TEST(Bpe, MergesAreReadInBothForms) {
  json file = byte_tokenizer();
  file["model"]["vocab"]["ab"] = 256;
  file["model"]["vocab"]["abc"] = 257;
  file["model"]["merges"] = json::array({"a b", json::array({"ab", "c"})});
  EXPECT_THAT(*must_load(file).encode("abcab"), ElementsAre(257, 256));
}

/// Processor time, so that other programs on the machine do not count.
double best_seconds(const std::function<void()>& work) {
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < 3; ++i) {
    const std::clock_t start = std::clock();
    work();
    best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
  }
  return best;
}

TEST(Bpe, LongWordsTakeNoQuadraticTime) {
  const Tokenizer tokenizer = testing_text::demo_tokenizer();
  std::mt19937 random(3);
  std::string letters;
  for (int i = 0; i < 16 * 16384; ++i) letters += static_cast<char>('a' + random() % 26);
  for (const std::string& word :
       {std::string(letters.size(), 'a'), letters, std::string(letters.size(), ' '),
        std::string(letters.size(), '\n'), std::string(letters.size(), '7')}) {
    const std::string_view part = std::string_view(word).substr(0, word.size() / 16);
    const double short_time = best_seconds([&] { ASSERT_TRUE(tokenizer.encode(part).ok()); });
    const double long_time = best_seconds([&] { ASSERT_TRUE(tokenizer.encode(word).ok()); });
    EXPECT_LT(long_time, 64 * short_time) << "a word of '" << word[0] << "'s";
  }
}

TEST(AddedTokens, LongestOfTheLeftmostWins) {
  json file = byte_tokenizer();
  file["added_tokens"] = {added_token(300, "<a>"), added_token(301, "<a><b>"),
                          added_token(302, "<b>")};
  const Tokenizer tokenizer = must_load(file);
  EXPECT_THAT(*tokenizer.encode("<a><b><b><a>", all_of("<a><b><b><a>")),
              ElementsAre(301, 302, 300));
  // The longest one does not fit into the range, the shorter one does.
  EXPECT_THAT(*tokenizer.encode("<a><b>", std::vector<ByteRange>{{0, 3}, {3, 6}}),
              ElementsAre(300, 302));
}

TEST(AddedTokens, SingleWordNeedsItsOwnWord) {
  json file = byte_tokenizer();
  file["added_tokens"] = json::array({added_token(300, "hi")});
  file["added_tokens"][0]["single_word"] = true;
  const Tokenizer tokenizer = must_load(file);
  const auto count = [&](std::string_view text) {
    const Ids ids = *tokenizer.encode(text, all_of(text));
    return std::ranges::count(ids, 300);
  };
  EXPECT_EQ(count("hi (hi) hi"), 3);
  EXPECT_EQ(count("this hip éhi hi7 _hi"), 0);
  // A word character of the content counts too.
  EXPECT_THAT(*tokenizer.encode("xhi", std::vector<ByteRange>{{1, 3}}), ElementsAre('x', 'h', 'i'));
}

TEST(AddedTokens, StrippingTakesWhiteSpaceOfTheMarkupOnly) {
  json file = byte_tokenizer();
  file["added_tokens"] = json::array({added_token(300, "<s>")});
  file["added_tokens"][0]["lstrip"] = true;
  file["added_tokens"][0]["rstrip"] = true;
  const Tokenizer tokenizer = must_load(file);
  const std::string text = "a \u3000<s>\n b";
  EXPECT_THAT(*tokenizer.encode(text, all_of(text)), ElementsAre('a', 300, 'b'));
  const size_t begin = text.find('<');
  EXPECT_THAT(*tokenizer.encode(text, std::vector<ByteRange>{{begin, begin + 4}}),
              ElementsAre('a', ' ', 0xE3, 0x80, 0x80, 300, ' ', 'b'));
}

TEST(AddedTokens, NormalizedOnesComeSecond) {
  json file = byte_tokenizer();
  file["added_tokens"] = {added_token(300, "ab", false), added_token(301, "bc")};
  file["added_tokens"][0]["normalized"] = true;
  const Tokenizer tokenizer = must_load(file);
  EXPECT_THAT(*tokenizer.encode("abc ab", all_of("abc ab")), ElementsAre('a', 301, ' ', 300));
}

TEST(AddedTokens, OneThatIsNotSpecialIsNeverSkipped) {
  json file = byte_tokenizer();
  file["added_tokens"] = {added_token(300, "<naïve>", false), added_token(301, "<s>")};
  const Tokenizer tokenizer = must_load(file);
  const std::string text = "x<naïve><s>";
  const Ids ids = *tokenizer.encode(text, all_of(text));
  EXPECT_THAT(ids, ElementsAre('x', 300, 301));
  EXPECT_EQ(tokenizer.decode(ids, true), "x<naïve>");
  EXPECT_THAT(tokenizer.encode(text)->size(), text.size());
}

TEST(AddedTokens, OneThatIsATokenOfTheModelKeepsItsBytes) {
  json file = byte_tokenizer();
  add_merge(file, "Ġ", "a");
  file["added_tokens"] = json::array({added_token(256, "Ġa", false)});
  const Tokenizer tokenizer = must_load(file);
  EXPECT_THAT(*tokenizer.encode(" a"), ElementsAre(256));
  EXPECT_EQ(tokenizer.decode(Ids{256}, true), " a");
}

}  // namespace
}  // namespace anyslot
