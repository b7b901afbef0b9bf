#include <gtest/gtest.h>

#include <minja/chat-template.hpp>
#include <nlohmann/json.hpp>
#include <string>

namespace {

TEST(Minja, RendersAChatTemplate) {
  const std::string source =
      "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content | trim }}{{ eos_token }}"
      "{% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}";
  const minja::chat_template chat(source, "<s>", "</s>");
  minja::chat_template_inputs inputs;
  inputs.messages = nlohmann::ordered_json::parse(R"([{"role": "user", "content": " Hello "}])");
  inputs.add_generation_prompt = true;
  EXPECT_EQ(chat.apply(inputs), "<s>[user]Hello</s>[assistant]");
}

}  // namespace
