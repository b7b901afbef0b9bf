#include "cohere_answer.h"

#include <memory>
#include <string>
#include <utility>

#include "cohere_request.h"
#include "json_body.h"
#include "text_answer.h"
#include "usage_json.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

std::string cohere_error_body(const ApiError& error) {
  return to_text({{"message", error_message(error)}});
}

json usage_of(const Usage& usage) {
  const json tokens = {{"input_tokens", usage.prompt_tokens},
                       {"output_tokens", usage.completion_tokens}};
  return {{"billed_units", tokens},
          {"tokens", tokens},
          {"cached_tokens", usage.cached_tokens},
          {"documents", document_usages_json(usage)}};
}

class CohereAnswer : public TextAnswer {
 public:
  CohereAnswer() : id_(new_answer_id("")) {}

  void begin(ResponseSink& sink) override {
    send_typed(sink,
               {{"type", "message-start"},
                {"id", id_},
                {"delta", {{"message", {{"role", "assistant"}, {"content", json::array()}}}}}});
    send_content(sink, "content-start", {{"type", "text"}, {"text", ""}});
  }

  void send(const Event& event, ResponseSink& sink) override {
    if (!event.text.empty()) send_content(sink, "content-delta", {{"text", event.text}});
    if (!event.last) return;
    send_typed(sink, {{"type", "content-end"}, {"index", 0}});
    send_end(sink,
             {{"finish_reason", finish_reason(end_of(event))}, {"usage", usage_of(event.usage)}});
  }

  void send_error(const ApiError& error, ResponseSink& sink) override {
    send_typed(sink, {{"type", "content-end"}, {"index", 0}});
    send_end(sink, {{"finish_reason", "ERROR"}, {"error", error_message(error)}});
  }

 protected:
  json whole_json(const std::string& text, const End& end, const Usage& usage) const override {
    return {
        {"id", id_},
        {"finish_reason", finish_reason(end)},
        {"message",
         {{"role", "assistant"}, {"content", json::array({{{"type", "text"}, {"text", text}}})}}},
        {"usage", usage_of(usage)}};
  }

 private:
  static const char* finish_reason(const End& end) {
    if (end.reason == FinishReason::kLength) return "MAX_TOKENS";
    return end.stop ? "STOP_SEQUENCE" : "COMPLETE";
  }

  static void send_content(ResponseSink& sink, const char* type, json content) {
    send_typed(sink, {{"type", type},
                      {"index", 0},
                      {"delta", {{"message", {{"content", std::move(content)}}}}}});
  }

  void send_end(ResponseSink& sink, json delta) const {
    send_typed(sink, {{"type", "message-end"}, {"id", id_}, {"delta", std::move(delta)}});
  }

  std::string id_;
};

}  // namespace

AnswerFormat cohere_format() {
  return {parse_cohere_request,
          [](const AnswerSetup& /*setup*/) -> std::unique_ptr<AnswerWriter> {
            return std::make_unique<CohereAnswer>();
          },
          cohere_error_body};
}

}  // namespace anyslot::server
