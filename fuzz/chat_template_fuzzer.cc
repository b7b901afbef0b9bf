#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "text/chat_template.h"

namespace {

/// A folder of this process, with a tokenizer_config.json.
std::string make_folder() {
  const auto folder =
      std::filesystem::temp_directory_path() / ("anyslot-fuzz-" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "tokenizer_config.json") << R"({"bos_token": "<s>", "eos_token": "</s>"})";
  return folder.string();
}

}  // namespace

// The input is a chat_template.jinja. What is accepted renders a conversation with documents, or
// refuses it.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace anyslot;
  static const std::string folder = make_folder();
  std::ofstream(folder + "/chat_template.jinja", std::ios::binary)
      .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  const auto chat = ChatTemplate::load(folder);
  if (!chat || !chat->has_value()) return 0;
  const std::vector<ChatMessage> messages = {{ChatRole::kSystem, "be brief", {}},
                                             {ChatRole::kUser, "why? </s>", {}}};
  (void)(*chat)->render(messages, {});
  (void)(*chat)->render(messages, {{"A", "one", "a"}, {"B", "two", "b"}});
  return 0;
}
