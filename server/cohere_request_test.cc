#include "cohere_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_requests.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

json cohere(const json& fields = json::object()) {
  json body = {{"model", "demo"}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  body.update(fields);
  return body;
}

TEST(CohereRequest, HasTheDefaultsOfCohere) {
  const AnswerRequest request = must_parse(parse_cohere_request, cohere());
  EXPECT_EQ(request.sampling.temperature, 0.3F);
  EXPECT_EQ(request.sampling.top_p, 0.75F);
  EXPECT_EQ(request.sampling.max_tokens, 1000);
  EXPECT_TRUE(request.fit_max_tokens);
  EXPECT_FALSE(must_parse(parse_cohere_request, cohere({{"max_tokens", 5}})).fit_max_tokens);
}

TEST(CohereRequest, ReadsParametersByTheirNames) {
  const AnswerRequest request =
      must_parse(parse_cohere_request, cohere({{"temperature", 0},
                                               {"p", 0.5},
                                               {"k", 4},
                                               {"seed", 9},
                                               {"frequency_penalty", 0.1},
                                               {"presence_penalty", 0.2},
                                               {"stop_sequences", {"x"}},
                                               {"stream", true},
                                               {"citation_options", {{"mode", "OFF"}}}}));
  EXPECT_EQ(request.sampling.temperature, 0.0F);
  EXPECT_EQ(request.sampling.top_p, 0.5F);
  EXPECT_EQ(request.sampling.top_k, 4);
  EXPECT_EQ(request.sampling.seed, 9U);
  EXPECT_EQ(request.sampling.frequency_penalty, 0.1F);
  EXPECT_EQ(request.sampling.presence_penalty, 0.2F);
  EXPECT_EQ(request.sampling.stop, std::vector<std::string>{"x"});
  EXPECT_TRUE(request.stream);
}

TEST(CohereRequest, TakesEveryFormOfDocument) {
  const json documents = json::parse(R"([
      "bare",
      {"id": "a", "data": {"title": "A", "text": "the text"}},
      {"data": {"title": "B", "snippet": "some", "url": "u", "year": 1990}}])");
  const AnswerRequest request =
      must_parse(parse_cohere_request, cohere({{"documents", documents}}));
  ASSERT_EQ(request.documents.size(), 3U);
  EXPECT_EQ(request.num_leading, 3U);
  EXPECT_EQ(request.documents[0].document.text, "bare");
  EXPECT_EQ(request.documents[0].document.title, std::nullopt);
  EXPECT_EQ(request.documents[1].document.id, "a");
  EXPECT_EQ(request.documents[1].document.title, "A");
  EXPECT_EQ(request.documents[1].document.text, "the text");
  EXPECT_EQ(request.documents[2].document.text, "snippet: some\nurl: u\nyear: 1990");
  const json absent = {{{"data", {{"title", nullptr}, {"text", "the text"}, {"url", nullptr}}}}};
  const AnswerRequest same = must_parse(parse_cohere_request, cohere({{"documents", absent}}));
  EXPECT_EQ(same.documents[0].document.title, std::nullopt);
  EXPECT_EQ(same.documents[0].document.text, "the text") << "null is as absent";
  EXPECT_EQ(must_parse(parse_cohere_request, cohere({{"documents", {{{"data", "plain"}}}}}))
                .documents[0]
                .document.text,
            "plain");
}

TEST(CohereRequest, RefusesWhatItCannotDo) {
  const auto refused = [](const json& fields, const std::string& param, const std::string& reason) {
    expect_refused(parse_cohere_request, cohere(fields), param, reason);
  };
  refused({{"documents", {{{"id", "a"}}}}}, "documents[0].data", "data");
  refused({{"documents", {{{"data", json::object()}}}}}, "documents[0].data", "no text");
  refused({{"documents", {{{"data", {{"text", nullptr}}}}}}}, "documents[0].data", "no text");
  refused({{"documents", {""}}}, "documents[0]", "empty");
  refused({{"documents", {"a", "b", "c", "d"}}}, "documents", "at most 3");
  refused({{"tools", {{{"type", "function"}}}}}, "tools", "not supported");
  refused({{"citation_options", {{"mode", "FAST"}}}}, "citation_options", "not supported");
  refused({{"safety_mode", "STRICT"}}, "safety_mode", "not supported");
  refused({{"unheard_of", 1}}, "unheard_of", "unheard_of");
}

}  // namespace
}  // namespace anyslot::server
