#include "text/chat_template.h"

namespace anyslot {

class ChatTemplate::Renderer {};

ChatTemplate::ChatTemplate(std::shared_ptr<const Renderer> renderer)
    : renderer_(std::move(renderer)) {}

Expected<std::optional<ChatTemplate>> ChatTemplate::load(const std::string& /*folder*/) {
  return std::optional<ChatTemplate>();
}

Expected<std::optional<ChatTemplate>> ChatTemplate::create(const ChatTemplateSource& /*source*/) {
  return std::optional<ChatTemplate>();
}

Expected<std::vector<Segment>> ChatTemplate::render(
    const std::vector<ChatMessage>& /*messages*/,
    const std::vector<Document>& /*documents*/) const {
  return failed_precondition(
      "this build renders no chat templates: build it with minja (scripts/fetch-minja.sh), or "
      "write a rag_template.json");
}

}  // namespace anyslot
