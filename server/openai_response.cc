#include "openai_response.h"

#include <utility>

#include "json_body.h"
#include "logprobs_json.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

TokenInfo token_info(const TokenLogprobs& logprobs, const TokenBytes& token_bytes) {
  TokenInfo token{token_bytes(logprobs.chosen.token_id), logprobs.chosen.logprob, {}};
  for (const TokenLogprob& top : logprobs.top) {
    token.top.emplace_back(token_bytes(top.token_id), top.logprob);
  }
  return token;
}

json stop_reason_json(const std::optional<StopReason>& reason) {
  if (!reason) return {};
  return std::visit([](const auto& value) { return json(value); }, *reason);
}

json head_json(const AnswerHead& head, bool chunk) {
  const char* object = head.api == Api::kCompletions ? "text_completion"
                       : chunk                       ? "chat.completion.chunk"
                                                     : "chat.completion";
  return {{"id", head.id}, {"object", object}, {"created", head.created}, {"model", head.model}};
}

}  // namespace

json ChoiceBuilder::logprobs_json(const Event& event, const TokenBytes& token_bytes) {
  if (event.logprobs.empty()) return {};
  if (api_ == Api::kChat) {
    json content = json::array();
    for (const TokenLogprobs& token : event.logprobs) {
      content.push_back(chat_logprob(token_info(token, token_bytes)));
    }
    return {{"content", std::move(content)}, {"refusal", nullptr}};
  }
  json logprobs = empty_completion_logprobs();
  for (const TokenLogprobs& token : event.logprobs) {
    append_completion_logprob(token_info(token, token_bytes), text_offset_, logprobs);
  }
  return logprobs;
}

void ChoiceBuilder::add(Event event) {
  text_ += event.text;
  for (TokenLogprobs& token : event.logprobs) {
    num_logprobs_ += 1 + token.top.size();
    logprobs_.push_back(std::move(token));
  }
  if (event.finish_reason) finish_reason_ = finish_reason_name(*event.finish_reason);
  if (event.stop_reason) stop_reason_ = stop_reason_json(event.stop_reason);
}

size_t ChoiceBuilder::whole_bytes() const {
  constexpr size_t kLogprobBytes = 80;
  return text_.size() + num_logprobs_ * kLogprobBytes;
}

// A token at a time: the tree of a whole answer takes ten times the memory of its text.
void ChoiceBuilder::append_logprobs(std::string& text, const TokenBytes& token_bytes) const {
  if (logprobs_.empty()) {
    text += "null";
  } else if (api_ == Api::kChat) {
    text += R"({"content":[)";
    for (const TokenLogprobs& token : logprobs_) {
      if (&token != &logprobs_.front()) text += ',';
      text += to_text(chat_logprob(token_info(token, token_bytes)));
    }
    text += R"(],"refusal":null})";
  } else {
    append_completion_logprobs(text, logprobs_.size(),
                               [&](size_t i) { return token_info(logprobs_[i], token_bytes); });
  }
}

void ChoiceBuilder::append_whole(std::string& text, const TokenBytes& token_bytes) const {
  json choice = {
      {"index", index_}, {"finish_reason", finish_reason_}, {"stop_reason", stop_reason_}};
  if (api_ == Api::kChat) {
    choice["message"] = {{"role", "assistant"}, {"content", text_}, {"refusal", nullptr}};
  } else {
    choice["text"] = text_;
  }
  text += to_text(choice);
  text.back() = ',';
  text += R"("logprobs":)";
  append_logprobs(text, token_bytes);
  text += '}';
}

json ChoiceBuilder::delta(const Event& event, const TokenBytes& token_bytes) {
  json choice = {{"index", index_},
                 {"logprobs", logprobs_json(event, token_bytes)},
                 {"finish_reason",
                  event.finish_reason ? json(finish_reason_name(*event.finish_reason)) : json()}};
  if (event.finish_reason) choice["stop_reason"] = stop_reason_json(event.stop_reason);
  if (api_ == Api::kCompletions) {
    choice["text"] = event.text;
  } else {
    choice["delta"] = event.text.empty() ? json::object() : json{{"content", event.text}};
  }
  return choice;
}

json role_delta(int index) {
  return {{"index", index},
          {"delta", {{"role", "assistant"}, {"content", ""}}},
          {"logprobs", nullptr},
          {"finish_reason", nullptr}};
}

std::string chunk_text(const AnswerHead& head, json choices, std::optional<json> usage) {
  json chunk = head_json(head, true);
  chunk["choices"] = std::move(choices);
  if (usage) chunk["usage"] = *std::move(usage);
  return to_text(chunk);
}

std::string answer_text(const AnswerHead& head, const std::vector<ChoiceBuilder>& choices,
                        const Usage& usage, const TokenBytes& token_bytes) {
  json answer = head_json(head, false);
  answer["usage"] = usage_json(usage);
  std::string text = to_text(answer);
  text.back() = ',';
  text += R"("choices":[)";
  for (const ChoiceBuilder& choice : choices) {
    if (&choice != &choices.front()) text += ',';
    choice.append_whole(text, token_bytes);
  }
  text += "]}";
  return text;
}

}  // namespace anyslot::server
