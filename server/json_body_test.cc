#include "json_body.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace anyslot::server {
namespace {

using ::testing::HasSubstr;

TEST(JsonBody, TakesAnObject) {
  const auto body = parse_body(R"({"a": [1, {"b": "}]\"{"}]})", 3);
  ASSERT_TRUE(body.ok());
  EXPECT_EQ((*body)["a"][1]["b"], "}]\"{");
}

TEST(JsonBody, RefusesWhatNestsTooDeep) {
  const auto body = parse_body(R"({"a": [[1]]})", 2);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, "json_too_deep");
  EXPECT_THAT(body.error().message, HasSubstr("3 levels"));
}

TEST(JsonBody, SurvivesAMillionBrackets) {
  const auto body = parse_body(std::string(1 << 20, '['), 32);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().status, 400);
}

TEST(JsonBody, RefusesMillionsOfValues) {
  std::string text = "{\"a\": [{}";
  for (int i = 0; i < 1'100'000; ++i) text += ",{}";
  const auto body = parse_body(text + "]}", 32);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, "json_too_large");
  EXPECT_THAT(body.error().message, HasSubstr("at most 1048576"));
  EXPECT_TRUE(parse_body("{\"a\": \"" + std::string(2'000'000, ',') + "\"}", 32).ok());
}

TEST(JsonBody, QuotesLittleOfWhatIsNoJson) {
  const auto body = parse_body("{\"a\": \"" + std::string(1 << 20, 'x'), 32);
  ASSERT_FALSE(body.ok());
  EXPECT_LT(body.error().message.size(), 400U);
}

TEST(JsonBody, RefusesMalformedJson) {
  for (const std::string text : {"{", "{\"a\": }", "nul", "{\"a\": 1e999}", "[1]", "", "{} {}",
                                 "{\"a\": \"\\ud800\"}", "{\"a\": \"\xff\"}"}) {
    const auto body = parse_body(text, 32);
    ASSERT_FALSE(body.ok()) << text;
    EXPECT_EQ(body.error().status, 400) << text;
    EXPECT_TRUE(nlohmann::json::accept(openai_error_body(body.error()))) << text;
  }
}

TEST(JsonBody, RefusesAFieldThatStandsTwiceInOneObject) {
  for (const std::string text :
       {R"({"n": 1, "n": 2})", R"({"a": [{"n": 1}, {"n": 1, "n": 1}]})", R"({"n": 1, "\u006e": 2})",
        R"({"n": {"a": 1}, "b": 2, "n": null})"}) {
    const auto body = parse_body(text, 32);
    ASSERT_FALSE(body.ok()) << text;
    EXPECT_EQ(body.error().status, 400);
    EXPECT_EQ(body.error().param, "n");
    EXPECT_EQ(body.error().code, "repeated_field");
  }
  EXPECT_EQ(parse_body(R"({"": 1, "": 2})", 32).error().code, "repeated_field");
  EXPECT_TRUE(parse_body(R"({"n": {"n": [{"n": 1}, {"n": 2}]}})", 32).ok());
}

TEST(JsonBody, WritesInvalidUtf8AsReplacementCharacters) {
  EXPECT_EQ(to_text({{"t", "a\xff"}}), "{\"t\":\"a\xef\xbf\xbd\"}");
}

TEST(ErrorBody, HasTheShapeOfOpenAi) {
  const auto error = nlohmann::json::parse(openai_error_body({429, "full", "", "queue_full"}));
  EXPECT_EQ(error["error"]["message"], "full");
  EXPECT_EQ(error["error"]["type"], "rate_limit_error");
  EXPECT_TRUE(error["error"]["param"].is_null());
  EXPECT_EQ(error["error"]["code"], "queue_full");
}

}  // namespace
}  // namespace anyslot::server
