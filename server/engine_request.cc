#include "engine_request.h"

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <utility>
#include <variant>

#include "api_keys.h"

namespace anyslot::server {

namespace {

bool encodes_documents_alone(Method method) {
  return method != Method::kPrefix && method != Method::kFull;
}

/// Sets pin, ttl and name of the documents among `segments`, which are those of `inputs` in their
/// order.
void keep_documents(const std::vector<DocumentInput>& inputs, std::vector<Segment>& segments) {
  auto input = inputs.begin();
  for (Segment& segment : segments) {
    if (segment.kind != SegmentKind::kDocument || input == inputs.end()) continue;
    segment.name = input->name;
    segment.pin = input->pin;
    segment.ttl_seconds = input->ttl_seconds;
    segment.hold_seconds = input->hold_seconds;
    ++input;
  }
}

}  // namespace

Expected<std::vector<Segment>> document_segments(const Engine& engine,
                                                 const std::vector<DocumentInput>& inputs) {
  std::vector<Segment> segments;
  const bool titled = std::ranges::any_of(
      inputs, [](const DocumentInput& input) { return input.document.title.has_value(); });
  if (titled) {
    auto rendered = engine.render_chat({{ChatRole::kUser, "?", {}}}, plain_documents(inputs));
    if (!rendered.ok()) return rendered.status();
    std::ranges::copy_if(std::move(*rendered), std::back_inserter(segments),
                         [](const Segment& s) { return s.kind == SegmentKind::kDocument; });
  } else {
    for (const DocumentInput& input : inputs) {
      Segment segment;
      segment.kind = SegmentKind::kDocument;
      segment.text = input.document.text;
      segment.id = input.document.id;
      segments.push_back(std::move(segment));
    }
  }
  keep_documents(inputs, segments);
  return segments;
}

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
