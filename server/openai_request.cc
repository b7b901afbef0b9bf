#include "openai_request.h"

#include <algorithm>
#include <utility>

#include "chat_messages.h"
#include "request_fields.h"
#include "sampling_fields.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr int kDefaultCompletionTokens = 16;
constexpr int64_t kMaxLogprobs = 1 << 18;  // of one answer

/// Fields of OpenAI's and other servers' requests that change nothing here.
void read_fields_without_effect(RequestFields& fields) {
  static_cast<void>(fields.string("user"));
  fields.unsupported("store", {false});
  fields.unsupported("service_tier", {"auto", "default"});
  fields.unsupported("skip_special_tokens", {true});
  fields.unsupported("spaces_between_special_tokens", {true});
  fields.unsupported("prompt_logprobs", {});
  fields.unsupported("echo", {false});
  fields.unsupported("use_beam_search", {false});
  fields.unsupported("length_penalty", {1, 1.0});
}

void read_stream(RequestFields& fields, AnswerRequest& request) {
  request.stream = fields.boolean("stream").value_or(false);
  const json* options = fields.object("stream_options");
  if (options == nullptr) return;
  if (!request.stream) {
    fields.fail("stream_options", "needs stream: true");
    return;
  }
  RequestFields stream(*options, "stream_options");
  request.include_usage = stream.boolean("include_usage").value_or(false);
  stream.unsupported("include_obfuscation", {false});
  stream.unsupported("continuous_usage_stats", {false});
  if (const auto error = stream.finish()) fields.fail(*error);
}

void read_common(RequestFields& fields, const RequestRules& rules, AnswerRequest& request) {
  check_model(fields, rules.model);
  read_sampling(fields, request.sampling);
  request.documents = read_documents(fields, "documents", rules.max_documents);
  request.num_leading = request.documents.size();
  read_own_fields(fields, request);
  read_stream(fields, request);
  read_fields_without_effect(fields);
}

int read_max_tokens(RequestFields& fields, const std::string& key, int fallback) {
  return static_cast<int>(fields.integer(key, 1).value_or(fallback));
}

/// min_tokens beyond a default of max_tokens is no mistake of the caller.
void fit_max_tokens(AnswerRequest& request, bool given) {
  SamplingParams& sampling = request.sampling;
  if (!given) sampling.max_tokens = std::max(sampling.max_tokens, sampling.min_tokens);
  request.fit_max_tokens = !given;
}

Prompt read_prompt(RequestFields& fields) {
  fields.require("prompt");
  const json* prompt = fields.find("prompt");
  if (prompt == nullptr) return {};
  if (prompt->is_array() && prompt->size() == 1 && !(*prompt)[0].is_number()) {
    prompt = &(*prompt)[0];  // a list of one prompt
  }
  if (prompt->is_string() && !prompt->get_ref<const std::string&>().empty()) {
    return {prompt->get<std::string>()};
  }
  if (prompt->is_array() && !prompt->empty() && std::ranges::all_of(*prompt, is_token_id)) {
    return {prompt->get<std::vector<int32_t>>()};
  }
  fields.fail("prompt",
              "must be one prompt, a text or an array of token ids, and not empty; send a request "
              "for each prompt");
  return {};
}

void read_completion_logprobs(RequestFields& fields, SamplingParams& sampling) {
  const auto count = fields.integer("logprobs", 0, kMaxTopLogprobs);
  sampling.logprobs = count.has_value();
  sampling.top_logprobs = static_cast<int>(count.value_or(0));
}

void read_chat_logprobs(RequestFields& fields, SamplingParams& sampling) {
  sampling.logprobs = fields.boolean("logprobs").value_or(false);
  const auto count = fields.integer("top_logprobs", 0, kMaxTopLogprobs);
  sampling.top_logprobs = static_cast<int>(count.value_or(0));
  if (sampling.top_logprobs > 0 && !sampling.logprobs) {
    fields.fail("top_logprobs", "needs logprobs: true");
  }
}

/// An answer that is not streamed is kept whole.
void check_logprobs(RequestFields& fields, const AnswerRequest& request) {
  const SamplingParams& sampling = request.sampling;
  if (!sampling.logprobs || request.stream) return;
  const int64_t per_token = sampling.top_logprobs + 1;
  const int64_t count = sampling.n * int64_t{sampling.max_tokens} * per_token;
  if (count <= kMaxLogprobs) return;
  fields.fail("logprobs", "n (" + std::to_string(sampling.n) + ") x max_tokens (" +
                              std::to_string(sampling.max_tokens) + ") x " +
                              std::to_string(per_token) + " log-probabilities a token are " +
                              std::to_string(count) + "; at most " + std::to_string(kMaxLogprobs) +
                              " are allowed without stream: true");
}

void refuse_tools(RequestFields& fields) {
  for (const char* key : {"tools", "functions"}) fields.unsupported(key, {json::array()});
  for (const char* key : {"tool_choice", "function_call"}) fields.unsupported(key, {"none"});
  for (const char* key : {"parallel_tool_calls", "modalities", "audio", "prediction", "metadata",
                          "reasoning_effort", "web_search_options", "verbosity", "chat_template",
                          "chat_template_kwargs", "guided_json", "guided_regex"}) {
    fields.unsupported(key);
  }
  fields.unsupported("response_format", {json::object({{"type", "text"}})});
  fields.unsupported("add_generation_prompt", {true});
  fields.unsupported("continue_final_message", {false});
}

}  // namespace

ApiExpected<AnswerRequest> parse_completion_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  read_common(fields, rules, request);
  request.input = read_prompt(fields);
  const bool limited = fields.find("max_tokens") != nullptr;
  request.sampling.max_tokens = read_max_tokens(fields, "max_tokens", kDefaultCompletionTokens);
  fit_max_tokens(request, limited);
  read_completion_logprobs(fields, request.sampling);
  check_logprobs(fields, request);
  fields.unsupported("suffix", {""});
  fields.unsupported("best_of", {1, request.sampling.n});
  fields.unsupported("add_special_tokens", {false});
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

ApiExpected<AnswerRequest> parse_chat_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  read_common(fields, rules, request);
  request.input = Conversation{read_messages(fields, rules.max_documents, request.documents)};
  const bool limited =
      fields.find("max_tokens") != nullptr || fields.find("max_completion_tokens") != nullptr;
  request.sampling.max_tokens =
      read_max_tokens(fields, "max_completion_tokens",
                      read_max_tokens(fields, "max_tokens", rules.default_chat_tokens));
  fit_max_tokens(request, limited);
  read_chat_logprobs(fields, request.sampling);
  check_logprobs(fields, request);
  refuse_tools(fields);
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

}  // namespace anyslot::server
