#include "text/token_memo.h"

#include <gtest/gtest.h>

#include <thread>

#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using testing_text::added_token;
using testing_text::byte_tokenizer;
using testing_text::must_load;

class TokenMemoTest : public ::testing::Test {
 protected:
  static nlohmann::json file() {
    nlohmann::json file = byte_tokenizer();
    file["added_tokens"] = nlohmann::json::array({added_token(300, "<s>")});
    return file;
  }
  TokenMemo::Ids encode(TokenMemo& memo, const std::string& text,
                        const std::vector<ByteRange>& markup = {},
                        const std::string& salt = {}) const {
    return *memo.encode(tokenizer_, salt, text, markup);
  }
  Tokenizer tokenizer_ = must_load(file());
};

TEST_F(TokenMemoTest, AKnownTextIsNotTokenizedAgain) {
  TokenMemo memo(1 << 20);
  const TokenMemo::Ids first = encode(memo, "some text");
  EXPECT_EQ(*first, *tokenizer_.encode("some text"));
  EXPECT_EQ(encode(memo, "some text"), first);  // the same object
  EXPECT_EQ(memo.stats().hits, 1);
  EXPECT_EQ(memo.stats().misses, 1);
  EXPECT_EQ(memo.stats().entries, 1);
}

TEST_F(TokenMemoTest, MarkupAndTokenizerBelongToTheKey) {
  TokenMemo memo(1 << 20);
  EXPECT_EQ(encode(memo, "<s>")->size(), 3U);
  EXPECT_EQ(encode(memo, "<s>", {{0, 3}})->size(), 1U);
  EXPECT_EQ(encode(memo, "<s>", {{0, 1}, {1, 3}})->size(), 3U);
  const Tokenizer other = must_load(byte_tokenizer());
  EXPECT_EQ((*memo.encode(other, "", "<s>", std::vector<ByteRange>{{0, 3}}))->size(), 3U);
  EXPECT_EQ(memo.stats().hits, 0);
}

TEST_F(TokenMemoTest, NoSaltFindsWhatAnotherOneSent) {
  TokenMemo memo(1 << 20);
  const TokenMemo::Ids red = encode(memo, "some text", {}, "red");
  EXPECT_EQ(*encode(memo, "some text", {}, "blue"), *red);
  EXPECT_EQ(memo.stats().hits, 0);
  EXPECT_EQ(encode(memo, "some text", {}, "red"), red);
}

TEST_F(TokenMemoTest, StaysWithinItsBytesAndForgetsTheLeastRecentlyUsed) {
  constexpr size_t kLimit = 100'000;
  TokenMemo memo(kLimit);
  const std::string used_often(1000, 'x');
  for (int i = 0; i < 500; ++i) {
    encode(memo, used_often);
    encode(memo, std::string(1000, 'y') + std::to_string(i));
    ASSERT_LE(memo.stats().bytes, kLimit);
  }
  EXPECT_EQ(memo.stats().hits, 499);
  EXPECT_GT(memo.stats().entries, 10);
  EXPECT_LT(memo.stats().entries, 30);  // about 4,260 bytes each
}

TEST_F(TokenMemoTest, WhatIsTooLargeIsGivenButNotKept) {
  TokenMemo memo(1000);
  encode(memo, "short");
  EXPECT_EQ(encode(memo, std::string(5000, 'x'))->size(), 5000U);
  EXPECT_EQ(memo.stats().entries, 1);
  EXPECT_EQ(encode(memo, "short")->size(), 5U);
  EXPECT_EQ(memo.stats().hits, 1);
  TokenMemo nothing(0);
  EXPECT_EQ(encode(nothing, "short")->size(), 5U);
  EXPECT_EQ(nothing.stats().entries, 0);
}

TEST_F(TokenMemoTest, ErrorsPassThroughAndAreNotKept) {
  TokenMemo memo(1 << 20);
  for (int i = 0; i < 2; ++i) {
    const auto ids = memo.encode(tokenizer_, "", "\xFF", {});
    ASSERT_FALSE(ids.ok());
    EXPECT_EQ(ids.status().code(), StatusCode::kInvalidArgument);
  }
  EXPECT_EQ(memo.stats().entries, 0);
}

TEST_F(TokenMemoTest, IdsOutliveTheirEviction) {
  TokenMemo memo(600);
  const TokenMemo::Ids kept = encode(memo, "first");
  encode(memo, std::string(60, 'x'));
  EXPECT_EQ(memo.stats().entries, 1);
  EXPECT_EQ(*kept, *tokenizer_.encode("first"));
}

TEST_F(TokenMemoTest, ManyThreads) {
  TokenMemo memo(20'000);
  std::vector<std::thread> threads;
  std::vector<int> right(4);
  threads.reserve(right.size());
  for (int& count : right) {
    threads.emplace_back([&] {
      for (int i = 0; i < 500; ++i) {
        const std::string text = "text " + std::to_string(i % 50);
        count += *encode(memo, text) == *tokenizer_.encode(text);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const int count : right) EXPECT_EQ(count, 500);
  EXPECT_EQ(memo.stats().hits + memo.stats().misses, 2000);
  EXPECT_LE(memo.stats().bytes, 20'000U);
}

}  // namespace
}  // namespace anyslot
