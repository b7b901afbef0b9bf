#include "cohere_request.h"

#include <string>
#include <utility>
#include <vector>

#include "chat_messages.h"
#include "sampling_fields.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr float kDefaultTemperature = 0.3F;  // Cohere's
constexpr float kDefaultTopP = 0.75F;

std::string text_of(const json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// The text of a document's data: its one field beside the title, or all of them by name, in the
/// order of their names. Null is as absent.
std::string data_text(const json& data) {
  std::vector<std::pair<std::string, std::string>> fields;
  for (const auto& field : data.items()) {
    if (field.key() == "title" || field.value().is_null()) continue;
    fields.emplace_back(field.key(), text_of(field.value()));
  }
  if (fields.size() == 1) return fields.front().second;
  std::string text;
  for (const auto& [name, value] : fields) {
    if (!text.empty()) text += '\n';
    text += name + ": " + value;
  }
  return text;
}

void read_data(RequestFields& fields, Document& document) {
  fields.require("data");
  const json* data = fields.find("data");
  if (data == nullptr) return;
  if (data->is_string()) {
    document.text = data->get<std::string>();
  } else if (data->is_object()) {
    document.text = data_text(*data);
    const auto title = data->find("title");
    if (title != data->end() && !title->is_null()) document.title = text_of(*title);
  } else {
    fields.fail("data", std::string("must be a string or an object, not ") + data->type_name());
  }
  if (fields.ok() && document.text.empty()) fields.fail("data", "holds no text");
}

/// Each a text, or {"data": {...}, "id"?}.
void read_cohere_documents(RequestFields& fields, int max_documents, AnswerRequest& request) {
  const json* list = fields.array("documents");
  if (list == nullptr) return;
  check_document_count(fields, "documents", list->size(), max_documents);
  for (size_t i = 0; fields.ok() && i < list->size(); ++i) {
    const json& value = (*list)[i];
    DocumentInput& input = request.documents.emplace_back();
    input.name = "documents[" + std::to_string(i) + "]";
    if (value.is_string()) {
      input.document.text = value.get<std::string>();
      if (input.document.text.empty()) fields.fail({400, input.name + ": is empty", input.name});
      continue;
    }
    RequestFields document(value, input.name);
    read_data(document, input.document);
    input.document.id = document.string("id").value_or("");
    check_document_id(document, "id", input.document.id);
    if (const auto error = document.finish()) fields.fail(*error);
  }
  request.num_leading = request.documents.size();
}

void read_cohere_sampling(RequestFields& fields, const RequestRules& rules,
                          AnswerRequest& request) {
  SamplingParams& sampling = request.sampling;
  const auto max_tokens = fields.integer("max_tokens", 1);
  sampling.max_tokens = static_cast<int>(max_tokens.value_or(rules.default_chat_tokens));
  request.fit_max_tokens = !max_tokens.has_value();
  sampling.temperature = kDefaultTemperature;
  sampling.top_p = kDefaultTopP;
  read_float(fields, "temperature", sampling.temperature);
  read_float(fields, "p", sampling.top_p);
  sampling.top_k = static_cast<int>(fields.integer("k").value_or(0));
  read_float(fields, "frequency_penalty", sampling.frequency_penalty);
  read_float(fields, "presence_penalty", sampling.presence_penalty);
  read_stop_strings(fields, "stop_sequences", sampling);
  read_seed(fields, sampling);
}

void refuse_unsupported(RequestFields& fields) {
  fields.unsupported("tools", {json::array()});
  fields.unsupported("tool_choice", {"NONE"});
  fields.unsupported("strict_tools", {false});
  fields.unsupported("logprobs", {false});
  fields.unsupported("raw_prompting", {false});
  fields.unsupported("priority", {0});
  fields.unsupported("thinking", {{{"type", "disabled"}}});
  fields.unsupported("response_format", {{{"type", "text"}}});
  fields.unsupported("safety_mode", {"OFF", "NONE"});
  fields.unsupported("citation_options", {json::object(), {{"mode", "OFF"}}, {{"mode", "off"}}});
}

}  // namespace

ApiExpected<AnswerRequest> parse_cohere_request(const json& body, const RequestRules& rules) {
  RequestFields fields(body, "");
  AnswerRequest request;
  check_model(fields, rules.model);
  read_cohere_documents(fields, rules.max_documents, request);
  request.input = Conversation{read_messages(fields, rules.max_documents, request.documents)};
  read_cohere_sampling(fields, rules, request);
  request.stream = fields.boolean("stream").value_or(false);
  read_own_fields(fields, request);
  refuse_unsupported(fields);
  if (auto error = fields.finish()) return *std::move(error);
  return request;
}

}  // namespace anyslot::server
