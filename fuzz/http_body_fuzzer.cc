#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "server/anthropic_request.h"
#include "server/blocks_request.h"
#include "server/cohere_request.h"
#include "server/json_body.h"
#include "server/openai_request.h"

// The input is the body of a request, which every API reads.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anyslot::server;
  constexpr int kMaxDepth = 64;
  constexpr std::array kReaders = {parse_completion_request, parse_chat_request,
                                   parse_messages_request,   parse_count_request,
                                   parse_cohere_request,     parse_blocks_request};
  const RequestRules rules{"demo", 3, 1000};
  const auto body = parse_body({reinterpret_cast<const char*>(data), size}, kMaxDepth);
  if (!body) return 0;
  (void)to_text(*body);
  for (const auto& read : kReaders) (void)read(*body, rules);
  return 0;
}
