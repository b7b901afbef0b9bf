#pragma once

#include <optional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "anyslot/status.h"
#include "text/text_template.h"

namespace anyslot {

/// A model's rag_template.json: how documents and a question become a prompt.
class RagTemplate {
 public:
  /// Fails with kNotFound, or with kFailedPrecondition for a file that is broken, lacks a field or
  /// has an unknown one; the message names the file and the field.
  static Expected<RagTemplate> load(const std::string& path);

  /// Preamble (text, left out when the template has none; before a document the engine encodes it
  /// as one), documents, query (text). A document with a title goes through the template, one
  /// without stands as it is. Fails with kInvalidArgument for a document without text.
  Expected<std::vector<Segment>> render(const std::vector<Document>& documents,
                                        const std::string& question) const;

  /// A conversation: the system's text joins the preamble, the documents stand before the first
  /// question, those of a later message before that. Fails with kInvalidArgument for an order of
  /// roles other than system, user, assistant, ..., user.
  Expected<std::vector<Segment>> render_chat(const std::vector<ChatMessage>& messages,
                                             const std::vector<Document>& documents) const;

  /// A finished answer as it stands in a conversation.
  Segment render_answer(const std::string& answer) const;

  const std::string& name() const { return name_; }
  /// The model was fine-tuned to read documents that were encoded alone.
  bool block_trained() const { return block_trained_; }
  /// Names of the tokens that end an answer.
  const std::vector<std::string>& stop() const { return stop_; }

 private:
  Segment render_preamble(const std::string& system) const;
  Status append_documents(const std::vector<Document>& documents,
                          std::vector<Segment>& segments) const;
  Segment render_query(const std::string& question, const Segment* answer) const;

  std::string name_;
  TextTemplate preamble_;
  TextTemplate document_;
  TextTemplate query_;
  std::optional<TextTemplate> next_query_;  // of later turns
  TextTemplate assistant_;
  std::vector<std::string> stop_;
  bool block_trained_ = false;
};

}  // namespace anyslot
