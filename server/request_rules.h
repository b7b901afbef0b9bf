#pragma once

#include <string>

namespace anyslot::server {

/// What a request's fields may be.
struct RequestRules {
  std::string model;  // the name that is served
  int max_documents = 0;
  int default_chat_tokens = 0;  // max_tokens of a chat request that does not say
};

}  // namespace anyslot::server
