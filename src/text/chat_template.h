#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "anyslot/engine.h"
#include "anyslot/request.h"
#include "anyslot/status.h"

namespace anyslot {

struct ChatTemplateSource;

/// A model's own chat template (Jinja). Thread-safe.
class ChatTemplate {
 public:
  /// Of a model's folder; none when the model has no template or this build cannot render any.
  /// Fails with kFailedPrecondition for a template that cannot be read.
  static Expected<std::optional<ChatTemplate>> load(const std::string& folder);
  /// Of a source; none when this build cannot render it. Fails in the same way.
  static Expected<std::optional<ChatTemplate>> create(const ChatTemplateSource& source);

  /// The conversation, ready for the assistant's answer. A document is what the template writes
  /// from the title to the end of the text of one; everything else is text, and what the template
  /// itself wrote is markup. Fails with kInvalidArgument when the template refuses the messages,
  /// when something of them or of a document does not stand in its output exactly once (templates
  /// may only cut white space at both ends), or when a message has documents of its own.
  Expected<std::vector<Segment>> render(const std::vector<ChatMessage>& messages,
                                        const std::vector<Document>& documents) const;

 private:
  class Renderer;
  explicit ChatTemplate(std::shared_ptr<const Renderer> renderer);
  std::shared_ptr<const Renderer> renderer_;
};

}  // namespace anyslot
