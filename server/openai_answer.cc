#include "openai_answer.h"

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "openai_request.h"
#include "openai_response.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

bool shows_something(const Event& event) {
  return !event.text.empty() || !event.logprobs.empty() || event.finish_reason.has_value();
}

class OpenAiAnswer : public AnswerWriter {
 public:
  OpenAiAnswer(Api api, const AnswerSetup& setup)
      : head_{api, new_answer_id(api == Api::kChat ? "chatcmpl-" : "cmpl-"), setup.created,
              setup.model},
        token_bytes_(setup.token_bytes),
        include_usage_(setup.include_usage) {
    for (int i = 0; i < setup.num_choices; ++i) choices_.emplace_back(api, i);
  }

  /// The client may be dropped after any event.
  void begin(ResponseSink& sink) override {
    if (head_.api != Api::kChat) return;
    for (int i = 0; i < static_cast<int>(choices_.size()); ++i) {
      send_chunk(sink, json::array({role_delta(i)}), no_usage_yet());
    }
  }

  void send(const Event& event, ResponseSink& sink) override {
    if (shows_something(event)) {
      json choice = choice_of(event).delta(event, token_bytes_);
      std::optional<json> usage = no_usage_yet();
      if (!include_usage_ && event.last) usage = usage_json(event.usage);
      send_chunk(sink, json::array({std::move(choice)}), std::move(usage));
    }
    if (!event.last) return;
    if (include_usage_) send_chunk(sink, json::array(), usage_json(event.usage));
    sink.send_event("", "[DONE]");
  }

  void send_error(const ApiError& error, ResponseSink& sink) override {
    sink.send_event("", openai_error_body(error));
    sink.send_event("", "[DONE]");
  }

  void add(const Event& event) override { choice_of(event).add(event); }

  size_t whole_bytes(const Usage& usage) const override {
    size_t bytes = usage_bytes(usage);
    for (const ChoiceBuilder& choice : choices_) bytes += choice.whole_bytes();
    return bytes;
  }

  std::string whole(const Usage& usage) const override {
    return answer_text(head_, choices_, usage, token_bytes_);
  }

 private:
  ChoiceBuilder& choice_of(const Event& event) {
    return choices_[static_cast<size_t>(event.choice)];
  }

  /// Where usage comes at the end, chunks before it say so.
  std::optional<json> no_usage_yet() const {
    return include_usage_ ? std::optional(json()) : std::nullopt;
  }

  void send_chunk(ResponseSink& sink, json choices, std::optional<json> usage) const {
    sink.send_event("", chunk_text(head_, std::move(choices), std::move(usage)));
  }

  AnswerHead head_;
  TokenBytes token_bytes_;
  bool include_usage_;
  std::vector<ChoiceBuilder> choices_;
};

template <Api api>
std::unique_ptr<AnswerWriter> open(const AnswerSetup& setup) {
  return std::make_unique<OpenAiAnswer>(api, setup);
}

}  // namespace

AnswerFormat openai_completions_format() {
  return {parse_completion_request, open<Api::kCompletions>, openai_error_body};
}

AnswerFormat openai_chat_format() {
  return {parse_chat_request, open<Api::kChat>, openai_error_body};
}

}  // namespace anyslot::server
