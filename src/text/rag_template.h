#pragma once

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

  /// A finished answer as it stands in a conversation.
  Segment render_answer(const std::string& answer) const;

  const std::string& name() const { return name_; }
  /// The model was fine-tuned to read documents that were encoded alone.
  bool block_trained() const { return block_trained_; }
  /// Names of the tokens that end an answer.
  const std::vector<std::string>& stop() const { return stop_; }

 private:
  std::string name_;
  TextTemplate preamble_;
  TextTemplate document_;
  TextTemplate query_;
  TextTemplate assistant_;
  std::vector<std::string> stop_;
  bool block_trained_ = false;
};

}  // namespace anyslot
