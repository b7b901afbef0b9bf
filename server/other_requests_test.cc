// Requests of Cohere's and Block-Attention's APIs.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "blocks_answer.h"
#include "cohere_request.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const RequestRules kRules{"demo", 3, 1000};

using Parse = ApiExpected<AnswerRequest> (*)(const json& body, const RequestRules& rules);

AnswerRequest must_parse(Parse parse, const json& body) {
  auto request = parse(body, kRules);
  if (!request) throw std::runtime_error(request.error().message);
  return *std::move(request);
}

void expect_refused(Parse parse, const json& body, const std::string& param,
                    const std::string& reason) {
  auto request = parse(body, kRules);
  ASSERT_FALSE(request.ok()) << body;
  EXPECT_EQ(request.error().status, 400) << request.error().message;
  EXPECT_EQ(request.error().param, param) << request.error().message;
  EXPECT_THAT(request.error().message, HasSubstr(reason));
}

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

TEST(BlocksRequest, EncodesAllBlocksButTheLastAlone) {
  const AnswerRequest request =
      must_parse(parse_blocks_request, {{"blocks", {"one ", "two ", "question"}}});
  ASSERT_EQ(request.documents.size(), 2U);
  EXPECT_EQ(request.num_leading, 2U);
  EXPECT_EQ(request.documents[0].document.text, "one ");
  EXPECT_EQ(request.documents[1].document.text, "two ");
  EXPECT_EQ(std::get<std::string>(std::get<Prompt>(request.input).content), "question");
  EXPECT_EQ(request.sampling.temperature, 0.0F) << "greedy";
  EXPECT_TRUE(request.texts_have_markup) << "the caller writes the template";
  EXPECT_TRUE(request.documents_alone);
  EXPECT_TRUE(request.fit_max_tokens);
  EXPECT_THAT(request.sampling.stop, ::testing::Contains("Question:"));
  const AnswerRequest limited = must_parse(
      parse_blocks_request, {{"blocks", {"question"}}, {"max_tokens", 5}, {"stop", {"x"}}});
  EXPECT_FALSE(limited.fit_max_tokens);
  EXPECT_THAT(limited.sampling.stop, ::testing::ElementsAre("x"));
  EXPECT_TRUE(must_parse(parse_blocks_request, {{"blocks", {"question"}}}).documents.empty());
}

TEST(BlocksRequest, LetsTheQuestionSeeMoreBlocks) {
  for (const auto& [num_local, num_documents, prompt] :
       std::initializer_list<std::tuple<int, size_t, const char*>>{
           {0, 0, "123"}, {1, 1, "23"}, {2, 2, "3"}, {9, 2, "3"}}) {
    const AnswerRequest request =
        must_parse(parse_blocks_request,
                   {{"blocks", {"1", "2", "3"}}, {"num_local_attention_blocks", num_local}});
    EXPECT_EQ(request.documents.size(), num_documents);
    EXPECT_EQ(std::get<std::string>(std::get<Prompt>(request.input).content), prompt);
  }
}

TEST(BlocksRequest, RefusesWhatItCannotDo) {
  const auto refused = [](const json& body, const std::string& param, const std::string& reason) {
    expect_refused(parse_blocks_request, body, param, reason);
  };
  refused(json::object(), "blocks", "blocks");
  refused({{"blocks", json::array()}}, "blocks", "empty");
  refused({{"blocks", {"a", ""}}}, "blocks[1]", "not empty");
  refused({{"blocks", {"a", 1}}}, "blocks[1]", "must be a text");
  refused({{"blocks", {"1", "2", "3", "4", "5"}}}, "blocks", "at most");
  refused({{"blocks", {"a"}}, {"n", 2}}, "n", "one text");
  refused({{"blocks", {"a"}}, {"unheard_of", 2}}, "unheard_of", "unheard_of");
}

}  // namespace
}  // namespace anyslot::server
