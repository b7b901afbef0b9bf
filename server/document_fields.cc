#include "document_fields.h"

#include <utility>

#include "log.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

DocumentInput read_document(RequestFields& fields, const json& value, const std::string& where) {
  DocumentInput input;
  input.name = where;
  if (value.is_string()) {
    input.document.text = value.get<std::string>();
    if (input.document.text.empty()) fields.fail({400, where + ": is empty", where});
    return input;
  }
  if (!value.is_object()) {
    fields.fail({400, where + ": must be a string or an object with text", where});
    return input;
  }
  RequestFields document(value, where);
  document.require("text");
  input.document.text = document.string("text").value_or("");
  if (input.document.text.empty()) document.fail("text", "is empty: there is nothing to encode");
  input.document.title = document.string("title");
  input.document.id = document.string("id").value_or("");
  check_document_id(document, "id", input.document.id);
  input.pin = document.boolean("pin").value_or(false);
  input.ttl_seconds = document.integer("ttl", 0, kMaxTtlSeconds);
  if (const auto error = document.finish()) fields.fail(*error);
  return input;
}

}  // namespace

void check_document_count(RequestFields& fields, const std::string& key, size_t count,
                          int max_documents) {
  if (count <= static_cast<size_t>(max_documents)) return;
  fields.fail(key,
              "brings the request to " + std::to_string(count) + " documents; at most " +
                  std::to_string(max_documents) + " are allowed",
              "too_many_documents");
}

void check_document_id(RequestFields& fields, const std::string& key, const std::string& id) {
  if (id.size() > kMaxIdBytes) {
    fields.fail(key, "has " + std::to_string(id.size()) + " bytes; at most " +
                         std::to_string(kMaxIdBytes) + " are allowed");
  }
  if (has_control_characters(id)) fields.fail(key, "holds control characters; use plain text");
}

std::vector<DocumentInput> read_documents(RequestFields& fields, const std::string& key,
                                          int max_documents, size_t num_before) {
  std::vector<DocumentInput> documents;
  const json* list = fields.array(key);
  if (list == nullptr) return documents;
  check_document_count(fields, key, num_before + list->size(), max_documents);
  if (!fields.ok()) return documents;
  documents.reserve(list->size());
  for (size_t i = 0; fields.ok() && i < list->size(); ++i) {
    documents.push_back(
        read_document(fields, (*list)[i], fields.name(key) + "[" + std::to_string(i) + "]"));
  }
  return documents;
}

std::vector<Document> plain_documents(const std::vector<DocumentInput>& inputs) {
  std::vector<Document> documents;
  documents.reserve(inputs.size());
  for (const DocumentInput& input : inputs) documents.push_back(input.document);
  return documents;
}

}  // namespace anyslot::server
