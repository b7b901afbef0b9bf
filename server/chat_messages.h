#pragma once

#include <cstddef>
#include <vector>

#include "anyslot/engine.h"
#include "document_fields.h"
#include "request_fields.h"

namespace anyslot::server {

inline constexpr size_t kMaxMessages = 4096;
inline constexpr size_t kMaxParts = 4096;  // of one message

/// Reads the field `messages`: {role, content, documents?}, content being a text or text parts.
/// Documents of messages are appended to `documents` in prompt order, too; with those already
/// there they are at most `max_documents`.
std::vector<ChatMessage> read_messages(RequestFields& fields, int max_documents,
                                       std::vector<DocumentInput>& documents);

}  // namespace anyslot::server
