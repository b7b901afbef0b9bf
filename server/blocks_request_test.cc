#include "blocks_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_requests.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

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
