#pragma once

#include <cstddef>
#include <string>

#include "anyslot/engine.h"

namespace anyslot {

/// What errors call a message of a conversation.
inline std::string message_name(const ChatMessage& message, size_t index) {
  return message.name.empty() ? "messages[" + std::to_string(index) + "]" : message.name;
}

}  // namespace anyslot
