#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "request_fields.h"

namespace anyslot::server {

/// A document of a request.
struct DocumentInput {
  Document document;
  std::string name;  // its place in the request, e.g. "documents[0]"
  bool pin = false;
  std::optional<int64_t> ttl_seconds;  // unset: as it was, or none
  int64_t hold_seconds = 0;            // see Segment
};

/// Reads a field that holds a list of documents, each a string or {text, title?, id?, pin?, ttl?}.
/// `max_documents`: of the request, which has `num_before` in other lists already.
std::vector<DocumentInput> read_documents(RequestFields& fields, const std::string& key,
                                          int max_documents, size_t num_before = 0);

/// Refuses more documents than a request may have.
void check_document_count(RequestFields& fields, const std::string& key, size_t count,
                          int max_documents);
/// Refuses an id that is too long or no plain text.
void check_document_id(RequestFields& fields, const std::string& key, const std::string& id);

std::vector<Document> plain_documents(const std::vector<DocumentInput>& inputs);

}  // namespace anyslot::server
