#include "anthropic_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test_requests.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json with(const json& fields) {
  json body = {
      {"model", "demo"}, {"max_tokens", 10}, {"messages", {{{"role", "user"}, {"content", "Hi"}}}}};
  body.update(fields);
  return body;
}

/// A request whose one message has these blocks.
json asking(json blocks) {
  return with({{"messages", {{{"role", "user"}, {"content", std::move(blocks)}}}}});
}

const std::vector<ChatMessage>& messages_of(const AnswerRequest& request) {
  return std::get<Conversation>(request.input).messages;
}

json document(const std::string& text, const json& fields = json::object()) {
  json block = {{"type", "document"},
                {"source", {{"type", "text"}, {"media_type", "text/plain"}, {"data", text}}}};
  block.update(fields);
  return block;
}

json search_result(const std::string& text, const json& fields = json::object()) {
  json block = {{"type", "search_result"},
                {"source", "https://example.org/a"},
                {"title", "A"},
                {"content", {{{"type", "text"}, {"text", text}}}}};
  block.update(fields);
  return block;
}

const json kQuestion = {{"type", "text"}, {"text", "Which?"}};
const json kKept = {{"cache_control", {{"type", "ephemeral"}}}};
const json kKeptForAnHour = {{"cache_control", {{"type", "ephemeral"}, {"ttl", "1h"}}}};

TEST(MessagesRequest, HasTheDefaultsOfAnthropic) {
  const AnswerRequest request = must_parse(parse_messages_request, with(json::object()));
  EXPECT_EQ(request.sampling.temperature, 1.0F);
  EXPECT_EQ(request.sampling.max_tokens, 10);
  EXPECT_TRUE(request.fit_max_tokens) << "a limit, as every request must give it";
  EXPECT_FALSE(request.stream);
  ASSERT_EQ(messages_of(request).size(), 1U);
  EXPECT_EQ(messages_of(request)[0].content, "Hi");
  EXPECT_EQ(request.num_leading, 0U);
}

TEST(MessagesRequest, ReadsParameters) {
  const AnswerRequest request =
      must_parse(parse_messages_request, with({{"temperature", 0.5},
                                               {"top_p", 0.9},
                                               {"top_k", 7},
                                               {"stop_sequences", {"a", "b"}},
                                               {"stream", true},
                                               {"method", "full"},
                                               {"cache_salt", "s"},
                                               {"metadata", {{"user_id", "u"}}}}));
  EXPECT_EQ(request.sampling.temperature, 0.5F);
  EXPECT_EQ(request.sampling.top_p, 0.9F);
  EXPECT_EQ(request.sampling.top_k, 7);
  EXPECT_EQ(request.sampling.stop, (std::vector<std::string>{"a", "b"}));
  EXPECT_TRUE(request.stream);
  EXPECT_EQ(request.method, Method::kFull);
  EXPECT_EQ(request.cache_salt, "s");
}

TEST(MessagesRequest, PutsTheSystemTextFirst) {
  for (const json& system :
       {json("Be brief.\nBe kind."), json::parse(R"([{"type": "text", "text": "Be brief."},
                        {"type": "text", "text": "Be kind.", "cache_control": {"type": "ephemeral"}}])")}) {
    const AnswerRequest request = must_parse(parse_messages_request, with({{"system", system}}));
    ASSERT_EQ(messages_of(request).size(), 2U);
    EXPECT_EQ(messages_of(request)[0].role, ChatRole::kSystem);
    EXPECT_EQ(messages_of(request)[0].content, "Be brief.\nBe kind.");
  }
}

TEST(MessagesRequest, TakesDocumentsFromBlocks) {
  const AnswerRequest request =
      must_parse(parse_messages_request,
                 asking({document("First.", {{"title", "One"}, {"context", "From a book."}}),
                         search_result("Second."),
                         document("Third.", {{"citations", {{"enabled", false}}}}),
                         {{"type", "text"}, {"text", "Which?"}}}));
  ASSERT_EQ(request.documents.size(), 3U);
  EXPECT_EQ(request.documents[0].document.title, "One");
  EXPECT_EQ(request.documents[0].document.text, "From a book.\n\nFirst.");
  EXPECT_EQ(request.documents[0].name, "messages[0].content[0].source");
  EXPECT_EQ(request.documents[1].document.title, "A");
  EXPECT_EQ(request.documents[1].document.id, "https://example.org/a");
  EXPECT_EQ(request.documents[1].document.text, "Second.");
  EXPECT_EQ(request.documents[2].document.title, std::nullopt);
  ASSERT_EQ(messages_of(request).size(), 1U);
  EXPECT_EQ(messages_of(request)[0].content, "Which?");
  EXPECT_EQ(request.num_leading, 3U);
}

TEST(MessagesRequest, CutsTheSourceOfASearchResultToAnId) {
  const json block = search_result("a", {{"source", std::string(255, 'x') + "\u00e4"}});
  EXPECT_EQ(
      must_parse(parse_messages_request, asking({block, kQuestion})).documents.at(0).document.id,
      std::string(255, 'x'));
}

TEST(MessagesRequest, CountsAreAskedForWithoutALimit) {
  json body = with(json::object());
  body.erase("max_tokens");
  EXPECT_TRUE(parse_count_request(body, kRules).ok());
}

TEST(MessagesRequest, TakesDocumentsMadeOfTextBlocks) {
  json block = document("");
  block["source"] = {
      {"type", "content"},
      {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}};
  EXPECT_EQ(
      must_parse(parse_messages_request, asking({block, kQuestion})).documents.at(0).document.text,
      "a\nb");
  block["source"] = {{"type", "content"}, {"content", "c"}};
  EXPECT_EQ(
      must_parse(parse_messages_request, asking({block, kQuestion})).documents.at(0).document.text,
      "c");
}

TEST(MessagesRequest, HoldsTheDocumentsUpToACacheControl) {
  const auto holds_of = [](const json& body) {
    std::vector<int64_t> holds;
    for (const DocumentInput& input : must_parse(parse_messages_request, body).documents) {
      EXPECT_FALSE(input.pin);
      EXPECT_EQ(input.ttl_seconds, std::nullopt);
      holds.push_back(input.hold_seconds);
    }
    return holds;
  };
  json text = {{"type", "text"}, {"text", "Which?"}};
  EXPECT_THAT(holds_of(asking({document("First."), document("Second.", kKeptForAnHour),
                               document("Third.", kKept), text})),
              ElementsAre(3600, 3600, 300));
  EXPECT_THAT(holds_of(asking({document("First.", kKept), document("Second."), text})),
              ElementsAre(300, 0));
  json parts = document("");
  parts["source"] = {{"type", "content"}, {"content", {{{"type", "text"}, {"text", "a"}}}}};
  parts["source"]["content"][0].update(kKept);
  EXPECT_THAT(holds_of(asking({document("First."), parts, document("Third."), text})),
              ElementsAre(300, 300, 0));
  json whole = asking({document("First."), text});
  whole.update(kKept);
  EXPECT_THAT(holds_of(whole), ElementsAre(300));
  text.update(kKept);
  EXPECT_THAT(holds_of(asking({document("First."), text})), ElementsAre(300));
}

TEST(MessagesRequest, JoinsWhatStandsTogether) {
  const json text = {{"type", "text"}, {"text", "a"}};
  const json messages = {
      {{"role", "user"}, {"content", {document("1"), text, text}}},
      {{"role", "user"}, {"content", {document("2"), {{"type", "text"}, {"text", "b"}}}}},
      {{"role", "assistant"}, {"content", "c"}},
      {{"role", "assistant"}, {"content", {{{"type", "text"}, {"text", "d"}}}}},
      {{"role", "user"}, {"content", {document("3"), text}}}};
  const AnswerRequest request = must_parse(parse_messages_request, with({{"messages", messages}}));
  const std::vector<ChatMessage>& read = messages_of(request);
  ASSERT_EQ(read.size(), 3U);
  EXPECT_EQ(read[0].content, "a\na\nb");
  EXPECT_EQ(read[1].content, "c\nd");
  EXPECT_EQ(read[2].name, "messages[4]") << "as the client counts";
  ASSERT_EQ(request.documents.size(), 3U);
  EXPECT_EQ(request.num_leading, 2U) << "those of the first question stand before it";
  EXPECT_TRUE(read[0].documents.empty());
  EXPECT_EQ(read[2].documents.size(), 1U);
}

TEST(MessagesRequest, RefusesWhatItCannotDo) {
  const json pdf = {
      {"type", "document"},
      {"source", {{"type", "base64"}, {"media_type", "application/pdf"}, {"data", "AA"}}}};
  const auto refused = [](const json& body, const std::string& param, const std::string& reason) {
    expect_refused(parse_messages_request, body, param, reason);
  };
  refused(asking({pdf}), "messages[0].content[0].source.type", "PDF");
  refused(asking({{{"type", "image"}}}), "messages[0].content[0].type", "image");
  refused(asking({document("a", {{"citations", {{"enabled", true}}}})}),
          "messages[0].content[0].citations", "not supported");
  refused(asking({document("")}), "messages[0].content[0].source", "empty");
  refused(asking({document("a", {{"colour", "red"}})}), "messages[0].content[0].colour", "colour");
  refused(asking({document("a", {{"cache_control", {{"type", "ephemeral"}, {"ttl", "2h"}}}})}),
          "messages[0].content[0].cache_control.ttl", "5m or 1h");
  refused(asking({search_result("a", {{"source", "a\x07"}})}), "messages[0].content[0].source",
          "control characters");
  refused(asking({document("a", kKept), document("b", kKept), search_result("c", kKept), kQuestion,
                  kQuestion})
              .patch(json::parse(R"([
              {"op": "add", "path": "/messages/0/content/3/cache_control", "value": {"type": "ephemeral"}},
              {"op": "add", "path": "/messages/0/content/4/cache_control", "value": {"type": "ephemeral"}}])")),
          "messages[0].content[4].cache_control", "more than 4");
  refused(asking({document("a")}), "messages[0]", "no text");
  refused(
      with({{"messages",
             {{{"role", "user"}, {"content", "a"}}, {{"role", "assistant"}, {"content", "b"}}}}}),
      "messages[1]", "the user's");
  refused(asking({document("a"), document("b"), document("c"), document("d")}),
          "messages[0].content[3].type", "at most 3");
  refused(with({{"tools", {{{"name", "f"}}}}}), "tools", "not supported");
  refused(with({{"thinking", {{"type", "enabled"}, {"budget_tokens", 1024}}}}), "thinking",
          "not supported");
  refused(with({{"unheard_of", 1}}), "unheard_of", "unheard_of");
  refused(with({{"max_tokens", nullptr}}), "max_tokens", "max_tokens");
  refused(with({{"messages", json::array()}}), "messages", "empty");
  refused(with({{"messages", {{{"role", "system"}, {"content", "a"}}}}}), "messages[0].role",
          "field system");
  refused(with({{"messages", {{{"role", "assistant"}, {"content", {document("a")}}}}}}),
          "messages[0].content[0].type", "user only");
  EXPECT_EQ(error_of_request(parse_messages_request, with({{"model", "other"}})).status, 404);
}

}  // namespace
}  // namespace anyslot::server
