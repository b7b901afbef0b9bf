#include "answer_request.h"

#include <utility>

#include "api_keys.h"

namespace anyslot::server {

void check_model(RequestFields& fields, const std::string& served) {
  fields.require("model");
  const std::string model = fields.string("model").value_or(served);
  if (model == served) return;
  fields.fail(ApiError{
      404, "the model \"" + excerpt(model) + "\" is not served here; use \"" + served + "\"",
      "model", "model_not_found"});
}

std::optional<Method> read_method(RequestFields& fields) {
  const auto name = fields.string("method");
  if (!name) return std::nullopt;
  const Expected<Method> method = parse_method(excerpt(*name));
  if (method.ok()) return *method;
  fields.fail("method", method.status().message());
  return std::nullopt;
}

void read_own_fields(RequestFields& fields, AnswerRequest& request) {
  request.method = read_method(fields);
  request.cache_salt = fields.string("cache_salt").value_or("");
  if (const auto ignore = fields.boolean("ignore_eos")) request.sampling.ignore_eos = *ignore;
}

namespace {

bool encodes_documents_alone(Method method) {
  return method != Method::kPrefix && method != Method::kFull;
}

}  // namespace

Expected<Request> engine_request(const Engine& engine, const AnswerRequest& request,
                                 const std::string& tenant) {
  Request result;
  if (const auto* chat = std::get_if<Conversation>(&request.input)) {
    const std::vector<DocumentInput> leading(
        request.documents.begin(),
        request.documents.begin() + static_cast<std::ptrdiff_t>(request.num_leading));
    auto segments = engine.render_chat(chat->messages, plain_documents(leading));
    if (!segments.ok()) return segments.status();
    result.segments = std::move(*segments);
    for (Segment& segment : result.segments) segment.name = "messages";
    keep_documents(request.documents, result.segments);
  } else {
    auto segments = document_segments(engine, request.documents);
    if (!segments.ok()) return segments.status();
    result.segments = std::move(*segments);
    const auto& [prompt, name] = std::get<Prompt>(request.input);
    Segment text;
    text.name = name;
    if (const auto* ids = std::get_if<std::vector<int32_t>>(&prompt)) text.token_ids = *ids;
    if (const auto* words = std::get_if<std::string>(&prompt)) text.text = *words;
    result.segments.push_back(std::move(text));
  }
  for (Segment& segment : result.segments) {
    if (request.texts_have_markup) segment.markup = {{0, segment.text.size()}};
  }
  result.sampling = request.sampling;
  result.method = request.method;
  if (request.documents_alone && !result.method &&
      !encodes_documents_alone(engine.model().default_method)) {
    result.method = Method::kLazy;
  }
  result.fit_max_tokens = request.fit_max_tokens;
  result.cache_salt = tenant_salt(tenant, request.cache_salt);
  result.tenant = tenant;
  return result;
}

}  // namespace anyslot::server
