#include "usage_json.h"

#include <utility>

namespace anyslot::server {

using nlohmann::json;

namespace {

json document_usage_json(const DocumentUsage& document) {
  return {{"index", document.index},
          {"id", document.id.empty() ? json() : json(document.id)},
          {"tokens", document.tokens},
          {"cached_tokens", document.cached_tokens},
          {"source", document_source_name(document.source)}};
}

}  // namespace

json document_usages_json(const Usage& usage) {
  json documents = json::array();
  for (const DocumentUsage& document : usage.documents) {
    documents.push_back(document_usage_json(document));
  }
  return documents;
}

json usage_json(const Usage& usage) {
  return {{"prompt_tokens", usage.prompt_tokens},
          {"completion_tokens", usage.completion_tokens},
          {"total_tokens", usage.prompt_tokens + usage.completion_tokens},
          {"prompt_tokens_details", {{"cached_tokens", usage.cached_tokens}}},
          {"documents", document_usages_json(usage)}};
}

size_t usage_bytes(const Usage& usage) {
  constexpr size_t kCounts = 256;
  constexpr size_t kDocument = 96;  // beside its id
  size_t bytes = kCounts;
  for (const DocumentUsage& document : usage.documents) bytes += kDocument + document.id.size();
  return bytes;
}

}  // namespace anyslot::server
