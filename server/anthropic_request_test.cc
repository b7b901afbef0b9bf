#include "anthropic_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

const RequestRules kRules{"demo", 3, 1000};

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

AnswerRequest must_parse(const json& body) {
  auto request = parse_messages_request(body, kRules);
  if (!request) throw std::runtime_error(request.error().message);
  return *std::move(request);
}

ApiError error_of_request(const json& body) {
  auto request = parse_messages_request(body, kRules);
  return request ? ApiError{200, "accepted: " + body.dump()} : request.error();
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

const json kKept = {{"cache_control", {{"type", "ephemeral"}}}};
const json kKeptForAnHour = {{"cache_control", {{"type", "ephemeral"}, {"ttl", "1h"}}}};

TEST(MessagesRequest, HasTheDefaultsOfAnthropic) {
  const AnswerRequest request = must_parse(with(json::object()));
  EXPECT_EQ(request.sampling.temperature, 1.0F);
  EXPECT_EQ(request.sampling.max_tokens, 10);
  EXPECT_TRUE(request.fit_max_tokens) << "a limit, as every request must give it";
  EXPECT_FALSE(request.stream);
  ASSERT_EQ(messages_of(request).size(), 1U);
  EXPECT_EQ(messages_of(request)[0].content, "Hi");
  EXPECT_EQ(request.num_leading, 0U);
}

TEST(MessagesRequest, ReadsParameters) {
  const AnswerRequest request = must_parse(with({{"temperature", 0.5},
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
    const AnswerRequest request = must_parse(with({{"system", system}}));
    ASSERT_EQ(messages_of(request).size(), 2U);
    EXPECT_EQ(messages_of(request)[0].role, ChatRole::kSystem);
    EXPECT_EQ(messages_of(request)[0].content, "Be brief.\nBe kind.");
  }
}

TEST(MessagesRequest, TakesDocumentsFromBlocks) {
  const AnswerRequest request =
      must_parse(asking({document("First.", {{"title", "One"}, {"context", "From a book."}}),
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
  for (const DocumentInput& input : request.documents) EXPECT_FALSE(input.pin);
  ASSERT_EQ(messages_of(request).size(), 1U);
  EXPECT_EQ(messages_of(request)[0].content, "Which?");
  EXPECT_EQ(messages_of(request)[0].documents.size(), 3U);
}

TEST(MessagesRequest, TakesDocumentsMadeOfTextBlocks) {
  json block = document("");
  block["source"] = {
      {"type", "content"},
      {"content", {{{"type", "text"}, {"text", "a"}}, {{"type", "text"}, {"text", "b"}}}}};
  EXPECT_EQ(must_parse(asking({block})).documents.at(0).document.text, "a\nb");
  block["source"] = {{"type", "content"}, {"content", "c"}};
  EXPECT_EQ(must_parse(asking({block})).documents.at(0).document.text, "c");
}

TEST(MessagesRequest, PinsTheDocumentsUpToACacheControl) {
  const AnswerRequest request = must_parse(asking({document("First."),
                                                   document("Second.", kKeptForAnHour),
                                                   document("Third.", kKept),
                                                   {{"type", "text"}, {"text", "Which?"}}}));
  EXPECT_TRUE(request.documents[0].pin);
  EXPECT_EQ(request.documents[0].ttl_seconds, 3600);
  EXPECT_EQ(request.documents[1].ttl_seconds, 3600);
  EXPECT_TRUE(request.documents[2].pin);
  EXPECT_EQ(request.documents[2].ttl_seconds, 300);

  const AnswerRequest first = must_parse(asking({document("First.", kKept), document("Second.")}));
  EXPECT_TRUE(first.documents[0].pin);
  EXPECT_FALSE(first.documents[1].pin);
  EXPECT_EQ(first.documents[1].ttl_seconds, std::nullopt);

  json text = {{"type", "text"}, {"text", "Which?"}};
  text.update(kKept);
  EXPECT_TRUE(must_parse(asking({document("First."), text})).documents[0].pin);

  json whole = asking({document("First.")});
  whole.update(kKept);
  EXPECT_TRUE(must_parse(whole).documents[0].pin);
}

TEST(MessagesRequest, RefusesWhatItCannotDo) {
  const json pdf = {
      {"type", "document"},
      {"source", {{"type", "base64"}, {"media_type", "application/pdf"}, {"data", "AA"}}}};
  const auto refused = [](const json& body, const std::string& param, const std::string& reason) {
    const ApiError error = error_of_request(body);
    EXPECT_EQ(error.status, 400) << error.message;
    EXPECT_EQ(error.param, param) << error.message;
    EXPECT_THAT(error.message, HasSubstr(reason));
  };
  refused(asking({pdf}), "messages[0].content[0].source.type", "PDF");
  refused(asking({{{"type", "image"}}}), "messages[0].content[0].type", "image");
  refused(asking({document("a", {{"citations", {{"enabled", true}}}})}),
          "messages[0].content[0].citations", "not supported");
  refused(asking({document("")}), "messages[0].content[0].source", "empty");
  refused(asking({document("a", {{"colour", "red"}})}), "messages[0].content[0].colour", "colour");
  refused(asking({document("a", {{"cache_control", {{"type", "ephemeral"}, {"ttl", "2h"}}}})}),
          "messages[0].content[0].cache_control.ttl", "5m or 1h");
  refused(asking({search_result("a", {{"source", std::string(300, 'x')}})}),
          "messages[0].content[0].source", "256");
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
  EXPECT_EQ(error_of_request(with({{"model", "other"}})).status, 404);
}

}  // namespace
}  // namespace anyslot::server
