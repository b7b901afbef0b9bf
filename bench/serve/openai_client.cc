#include "openai_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

namespace anyslot::bench {

namespace {

using nlohmann::json;

std::string_view role_name(ChatRole role) {
  switch (role) {
    case ChatRole::kSystem:
      return "system";
    case ChatRole::kAssistant:
      return "assistant";
    case ChatRole::kUser:
      break;
  }
  return "user";
}

json documents_field(const WorkloadRequest& request) {
  json documents = json::array();
  for (const WorkloadDocument& document : request.documents) {
    json entry = {{"text", document.text}};
    if (document.title) entry["title"] = *document.title;
    if (!document.id.empty()) entry["id"] = document.id;
    documents.push_back(std::move(entry));
  }
  return documents;
}

/// The documents as they stand in a prompt of servers that have no field for them.
std::string documents_text(const WorkloadRequest& request) {
  std::string text;
  for (const WorkloadDocument& document : request.documents) {
    if (document.title) text += fmt::format("- Title: {}\n", *document.title);
    text += document.text;
    if (!text.ends_with('\n')) text += '\n';
  }
  return text.empty() ? text : text + "\n";
}

json chat_messages(const WorkloadRequest& request, const std::string& lead) {
  json messages = json::array();
  bool led = false;
  for (const WorkloadMessage& message : request.messages) {
    const bool leads = !led && message.role == ChatRole::kUser;
    led = led || leads;
    messages.push_back({{"role", role_name(message.role)},
                        {"content", leads ? lead + message.content : message.content}});
  }
  return messages;
}

std::string completion_prompt(const WorkloadRequest& request, const std::string& lead) {
  std::string prompt = lead;
  for (const WorkloadMessage& message : request.messages) {
    if (&message != &request.messages.front()) prompt += "\n";
    prompt += message.content;
  }
  return prompt;
}

std::string text_at(const json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? it->get<std::string>() : "";
}

void read_choice(const json& choice, AnswerChunk& chunk) {
  if (!choice.is_object()) return;
  const auto finish = choice.find("finish_reason");
  chunk.finished = finish != choice.end() && !finish->is_null();
  const auto delta = choice.find("delta");
  if (delta == choice.end() || !delta->is_object()) {
    chunk.text = text_at(choice, "text");
    chunk.is_output = true;
    return;
  }
  chunk.text = text_at(*delta, "content");
  const bool thinks =
      !text_at(*delta, "reasoning_content").empty() || !text_at(*delta, "reasoning").empty();
  // Servers open a stream with a delta of the role alone, some before there is a token.
  const bool opens = delta->contains("role") && chunk.text.empty() && !thinks;
  chunk.is_output = !opens || chunk.finished;
}

std::optional<int64_t> count_at(const json& object, const char* key) {
  const auto it = object.find(key);
  if (it == object.end() || !it->is_number_integer()) return std::nullopt;
  return it->get<int64_t>();
}

std::vector<DocumentUsage> documents_of(const json& usage) {
  std::vector<DocumentUsage> documents;
  const auto list = usage.find("documents");
  if (list == usage.end() || !list->is_array()) return documents;
  for (const json& entry : *list) {
    if (!entry.is_object()) return {};
    DocumentUsage document;
    document.index = static_cast<int>(documents.size());
    document.id = text_at(entry, "id");
    document.tokens = count_at(entry, "tokens").value_or(0);
    document.cached_tokens = count_at(entry, "cached_tokens").value_or(0);
    const std::string source = text_at(entry, "source");
    for (const DocumentSource each : {DocumentSource::kPool, DocumentSource::kJoined}) {
      if (source == document_source_name(each)) document.source = each;
    }
    documents.push_back(std::move(document));
  }
  return documents;
}

void read_usage(const json& usage, AnswerChunk& chunk) {
  chunk.prompt_tokens = count_at(usage, "prompt_tokens");
  chunk.output_tokens = count_at(usage, "completion_tokens");
  const auto details = usage.find("prompt_tokens_details");
  if (details != usage.end() && details->is_object()) {
    chunk.cached_tokens = count_at(*details, "cached_tokens");
  }
  chunk.documents = documents_of(usage);
}

/// What llama.cpp's server tells of a request beside the usage, which in builds of 2025 does not
/// say what was cached.
void read_timings(const json& timings, AnswerChunk& chunk) {
  const auto cached = count_at(timings, "cache_n");
  const auto computed = count_at(timings, "prompt_n");
  if (!chunk.cached_tokens) chunk.cached_tokens = cached;
  if (!chunk.prompt_tokens && cached && computed) chunk.prompt_tokens = *cached + *computed;
  if (!chunk.output_tokens) chunk.output_tokens = count_at(timings, "predicted_n");
}

std::string message_of(const json& error) {
  if (error.is_string()) return error.get<std::string>();
  if (!error.is_object()) return "an error without a message";
  const std::string message = text_at(error, "message");
  return message.empty() ? "an error without a message" : message;
}

}  // namespace

std::string request_body(const HttpTargetOptions& options, const WorkloadRequest& request) {
  const std::string lead = options.documents_as_field ? "" : documents_text(request);
  json body = {{"model", options.model},
               {"max_tokens", request.max_tokens},
               {"temperature", 0},
               {"stream", true},
               {"stream_options", {{"include_usage", true}}}};
  if (options.endpoint.ends_with("/chat/completions")) {
    body["messages"] = chat_messages(request, lead);
  } else {
    body["prompt"] = completion_prompt(request, lead);
  }
  if (options.documents_as_field && !request.documents.empty()) {
    body["documents"] = documents_field(request);
  }
  if (request.ignore_eos) body["ignore_eos"] = true;
  if (options.method) body["method"] = method_name(*options.method);
  if (!options.cache_salt.empty()) body["cache_salt"] = options.cache_salt;
  return body.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<std::string> EventParser::feed(std::string_view bytes) {
  unread_ += bytes;
  std::vector<std::string> events;
  size_t begin = 0;
  for (size_t end = 0; (end = unread_.find('\n', begin)) != std::string::npos; begin = end + 1) {
    std::string_view line(unread_.data() + begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      if (!data_.empty()) events.push_back(std::exchange(data_, {}));
    } else if (line.starts_with("data:")) {
      line.remove_prefix(line.starts_with("data: ") ? 6 : 5);
      if (!data_.empty()) data_ += '\n';
      data_ += line;
    } else if (line.starts_with("error:")) {  // of llama.cpp's server in builds of 2025
      data_ = fmt::format(R"({{"error":{}}})", line.substr(6));
    }
  }
  unread_.erase(0, begin);
  return events;
}

AnswerChunk parse_chunk(const std::string& data) {
  AnswerChunk chunk;
  const json object = json::parse(data, nullptr, false);
  if (!object.is_object()) {
    chunk.error = fmt::format("an event is no JSON object: {}", data.substr(0, 100));
    return chunk;
  }
  if (const auto error = object.find("error"); error != object.end() && !error->is_null()) {
    chunk.error = message_of(*error);
    return chunk;
  }
  const auto choices = object.find("choices");
  if (choices != object.end() && choices->is_array() && !choices->empty()) {
    read_choice(choices->front(), chunk);
  }
  const auto usage = object.find("usage");
  if (usage != object.end() && usage->is_object()) read_usage(*usage, chunk);
  const auto timings = object.find("timings");
  if (timings != object.end() && timings->is_object()) read_timings(*timings, chunk);
  return chunk;
}

std::string error_message(const std::string& body) {
  const json object = json::parse(body, nullptr, false);
  if (object.is_object() && object.contains("error")) return message_of(object["error"]);
  if (object.is_object() && object.contains("message")) return text_at(object, "message");
  return body.substr(0, 200);
}

std::optional<int64_t> metric_sum(std::string_view text, std::string_view name,
                                  std::string_view label) {
  std::optional<int64_t> sum;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (!line.starts_with(name)) continue;
    line.remove_prefix(name.size());
    if (!line.starts_with(' ') && !line.starts_with('{')) continue;
    const size_t labels_end = line.starts_with('{') ? line.find('}') : 0;
    if (labels_end == std::string_view::npos) continue;
    if (line.substr(0, labels_end).find(label) == std::string_view::npos) continue;
    line.remove_prefix(labels_end + (labels_end > 0 ? 1 : 0));
    line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
    double value = 0;
    const auto [stop, error] = std::from_chars(line.data(), line.data() + line.size(), value);
    if (error != std::errc() || !std::isfinite(value)) continue;
    sum = sum.value_or(0) + static_cast<int64_t>(value);
  }
  return sum;
}

}  // namespace anyslot::bench
