#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "text/chat_template.h"
#include "text/chat_template_source.h"

// The input is a chat template. What is accepted renders a conversation with documents, or refuses
// it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anyslot;
  const auto chat =
      ChatTemplate::create({.path = "fuzz",
                            .text = std::string(reinterpret_cast<const char*>(data), size),
                            .bos_token = "<s>",
                            .eos_token = "</s>"});
  if (!chat) return 0;
  const std::vector<ChatMessage> messages = {{ChatRole::kSystem, "be brief", {}},
                                             {ChatRole::kUser, "why? </s>", {}}};
  (void)(*chat)->render(messages, {});
  (void)(*chat)->render(messages, {{"A", "one", "a"}, {"B", "two", "b"}});
  return 0;
}
