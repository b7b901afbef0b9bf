// The writers of the APIs whose answers are one text, without a server.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "anthropic_answer.h"
#include "blocks_answer.h"
#include "cohere_answer.h"

namespace anyslot::server {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Keeps what is sent.
class FakeSink : public ResponseSink {
 public:
  void reply(HttpReply /*reply*/) override { ADD_FAILURE() << "a stream"; }
  void begin_events() override {}
  void send_event(std::string_view name, std::string_view data) override {
    names.emplace_back(name);
    events.push_back(json::parse(data));
  }
  void end_events() override {}
  void on_gone(std::function<void()> /*gone*/) override {}

  std::vector<std::string> names;
  std::vector<json> events;
};

Event text_event(const std::string& text) {
  Event event;
  event.token_ids = {1};
  event.text = text;
  return event;
}

Event last_event(const std::string& text) {
  Event event = text_event(text);
  event.finish_reason = FinishReason::kLength;
  event.last = true;
  event.usage.prompt_tokens = 10;
  event.usage.cached_tokens = 4;
  event.usage.completion_tokens = 2;
  event.usage.documents = {{0, "a", 5, 3, DocumentSource::kJoined}};
  return event;
}

FakeSink stream_of(const AnswerFormat& format, const std::vector<Event>& events) {
  FakeSink sink;
  const auto writer = format.open({"demo", 5, {}});
  writer->begin(sink);
  for (const Event& event : events) writer->send(event, sink);
  return sink;
}

FakeSink broken_stream_of(const AnswerFormat& format) {
  FakeSink sink;
  const auto writer = format.open({"demo", 5, {}});
  writer->begin(sink);
  writer->send(text_event("a"), sink);
  sink.names.clear();
  sink.events.clear();
  writer->send_error({503, "it ends", "", "shutting_down"}, sink);
  return sink;
}

TEST(AnthropicAnswer, BeginsAndEndsWithOneEvent) {
  const FakeSink sink = stream_of(anthropic_format(), {last_event("")});
  EXPECT_THAT(sink.names, ElementsAre("message_start", "content_block_start", "content_block_stop",
                                      "message_delta", "message_stop"));
  const json& usage = sink.events[0]["message"]["usage"];
  EXPECT_EQ(usage["input_tokens"], 4);
  EXPECT_EQ(usage["cache_creation_input_tokens"], 2) << "a document that was joined, too";
  EXPECT_EQ(usage["cache_read_input_tokens"], 4);
  EXPECT_EQ(usage["documents"][0]["id"], "a");
  EXPECT_EQ(sink.events[3]["delta"]["stop_reason"], "max_tokens");
  EXPECT_FALSE(sink.events[3]["usage"].contains("documents")) << "told once";
}

TEST(AnthropicAnswer, SendsTextAsItComes) {
  const FakeSink sink =
      stream_of(anthropic_format(), {text_event("a"), text_event(""), last_event("b")});
  EXPECT_THAT(sink.names, ElementsAre("message_start", "content_block_start", "content_block_delta",
                                      "content_block_delta", "content_block_stop", "message_delta",
                                      "message_stop"));
  EXPECT_EQ(sink.events[2]["delta"]["text"], "a");
  EXPECT_EQ(sink.events[3]["delta"]["text"], "b");
}

TEST(AnthropicAnswer, EndsWithAnError) {
  const FakeSink sink = broken_stream_of(anthropic_format());
  EXPECT_THAT(sink.names, ElementsAre("error"));
  EXPECT_EQ(sink.events[0]["error"]["type"], "overloaded_error");
  EXPECT_EQ(sink.events[0]["error"]["message"], "it ends");
}

TEST(CohereAnswer, SendsTextAsItComes) {
  const FakeSink sink = stream_of(cohere_format(), {text_event("a"), last_event("")});
  EXPECT_THAT(sink.names, ElementsAre("message-start", "content-start", "content-delta",
                                      "content-end", "message-end"));
  EXPECT_EQ(sink.events[2]["delta"]["message"]["content"]["text"], "a");
  EXPECT_EQ(sink.events[4]["delta"]["finish_reason"], "MAX_TOKENS");
  EXPECT_EQ(sink.events[4]["delta"]["usage"]["tokens"]["input_tokens"], 10);
}

TEST(CohereAnswer, EndsWithAnError) {
  const FakeSink sink = broken_stream_of(cohere_format());
  EXPECT_THAT(sink.names, ElementsAre("content-end", "message-end"));
  EXPECT_EQ(sink.events[1]["delta"]["finish_reason"], "ERROR");
  EXPECT_EQ(sink.events[1]["delta"]["error"], "it ends");
}

TEST(BlocksAnswer, SendsTextAsItComes) {
  const FakeSink sink =
      stream_of(blocks_format(), {text_event("a"), text_event(""), last_event("b")});
  EXPECT_THAT(sink.names, ElementsAre("", ""));
  EXPECT_EQ(sink.events[0]["generated"], "a");
  EXPECT_FALSE(sink.events[0].contains("usage"));
  EXPECT_EQ(sink.events[1]["generated"], "b");
  EXPECT_EQ(sink.events[1]["finish_reason"], "length");
  EXPECT_EQ(sink.events[1]["usage"]["prompt_tokens"], 10);
}

TEST(BlocksAnswer, EndsWithAnError) {
  const FakeSink sink = broken_stream_of(blocks_format());
  ASSERT_EQ(sink.events.size(), 1U);
  EXPECT_EQ(sink.events[0]["ret"], 1);
  EXPECT_EQ(sink.events[0]["message"], "it ends");
}

TEST(TextAnswer, CountsItsBytesBeforeItIsWritten) {
  Event event = last_event(std::string(1000, 'x'));
  for (int i = 0; i < 500; ++i) {
    event.usage.documents.push_back({i, "some-id", 5, 3, DocumentSource::kPool});
  }
  for (const AnswerFormat& format : {anthropic_format(), cohere_format(), blocks_format()}) {
    const auto writer = format.open({"demo", 5, {}});
    writer->add(event);
    const double bytes = static_cast<double>(writer->whole(event.usage).size());
    EXPECT_NEAR(static_cast<double>(writer->whole_bytes(event.usage)) / bytes, 1, 0.5);
  }
}

TEST(ErrorBodies, NameTheFieldWhereTheShapeHasNoPlaceForIt) {
  const ApiError error{400, "is wrong", "field"};
  EXPECT_THAT(anthropic_format().error_body(error), HasSubstr("field: is wrong"));
  EXPECT_THAT(cohere_format().error_body(error), HasSubstr("field: is wrong"));
  EXPECT_THAT(blocks_format().error_body(error), HasSubstr("field: is wrong"));
  EXPECT_THAT(cohere_format().error_body({400, "field: no", "field"}), HasSubstr("\"field: no\""));
}

}  // namespace
}  // namespace anyslot::server
