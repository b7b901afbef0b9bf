#include "text/chat_template.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <nlohmann/json.hpp>

#include "support/temporary_folder.h"

namespace anyslot {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using testing_support::TemporaryFolder;

constexpr const char* kPlain =
    "{{ bos_token }}{% for m in messages %}<|{{ m.role }}|>{{ m.content | trim }}{{ eos_token }}"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}";
constexpr const char* kWithDocuments =
    "{{ bos_token }}{% for d in documents %}[{{ d.title }}: {{ d.text }}]{% endfor %}"
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}<|assistant|>";

ChatTemplate load_template(const std::string& text) {
  const TemporaryFolder folder;
  folder.write(
      "tokenizer_config.json",
      json({{"chat_template", text}, {"bos_token", "<s>"}, {"eos_token", {{"content", "</s>"}}}})
          .dump());
  auto loaded = ChatTemplate::load(folder.path());
  if (!loaded.ok()) throw std::runtime_error(loaded.status().message());
  return **loaded;
}

/// The text with what the template wrote in parentheses.
std::string shown(const Segment& segment) {
  std::string text = segment.text;
  for (auto range = segment.markup.rbegin(); range != segment.markup.rend(); ++range) {
    text.insert(range->end, ")").insert(range->begin, "(");
  }
  return text;
}

TEST(ChatTemplate, TellsContentFromMarkup) {
  const ChatTemplate chat = load_template(kPlain);
  const auto segments = chat.render({{ChatRole::kUser, " Hi</s> ", {}}}, {});
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  ASSERT_EQ(segments->size(), 1U);
  EXPECT_EQ(shown((*segments)[0]), "(<s><|user|>)Hi</s>(</s><|assistant|>)");
}

TEST(ChatTemplate, CutsOutDocuments) {
  const ChatTemplate chat = load_template(kWithDocuments);
  const auto segments =
      chat.render({{ChatRole::kUser, "why?", {}}}, {{"A", "one", "a"}, {"B", "two", "b"}});
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  ASSERT_EQ(segments->size(), 5U);
  EXPECT_EQ(shown((*segments)[0]), "(<s>[)");
  EXPECT_EQ(shown((*segments)[1]), "A(: )one");
  EXPECT_EQ((*segments)[1].kind, SegmentKind::kDocument);
  EXPECT_EQ((*segments)[1].id, "a");
  EXPECT_EQ(shown((*segments)[2]), "(][)");
  EXPECT_EQ(shown((*segments)[3]), "B(: )two");
  EXPECT_EQ(shown((*segments)[4]), "(]<|user|>)why?(<|assistant|>)");
}

TEST(ChatTemplate, NeverDropsADocument) {
  const ChatTemplate chat = load_template(kPlain);
  const auto segments = chat.render({{ChatRole::kUser, "why?", {}}}, {{"A", "one", "a"}});
  ASSERT_FALSE(segments.ok());
  EXPECT_EQ(segments.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(segments.status().message(), HasSubstr("documents[0]"));
}

TEST(ChatTemplate, NeitherTearsDocumentsApartNorChangesTheirOrder) {
  const std::string torn =
      "{% for d in documents %}{{ d.title }};{% endfor %}"
      "{% for d in documents %}{{ d.text }};{% endfor %}{{ messages[0].content }}";
  const std::string turned =
      "{% for d in documents[::-1] %}{{ d.title }}: {{ d.text }};{% endfor %}"
      "{{ messages[0].content }}";
  const Document one{"A", "one", "a"};
  const Document two{"B", "two", "b"};
  for (const std::string& text : {torn, turned}) {
    const ChatTemplate chat = load_template(text);
    EXPECT_TRUE(chat.render({{ChatRole::kUser, "why?", {}}}, {one}).ok());
    const auto segments = chat.render({{ChatRole::kUser, "why?", {}}}, {one, two});
    ASSERT_FALSE(segments.ok()) << text;
    EXPECT_THAT(segments.status().message(), HasSubstr("in their order"));
    EXPECT_EQ(segments.status().field(), "documents");
  }
}

TEST(ChatTemplate, FindsThePlacesOfManyMessages) {
  const ChatTemplate chat = load_template(kPlain);
  std::vector<ChatMessage> messages;
  std::string expected = "(<s>";
  for (int i = 0; i < 1000; ++i) {
    messages.push_back({ChatRole::kUser, "aNysLot" + std::to_string(999 - i) + "Mark", {}});
    expected += (i == 0 ? "<|user|>)" : "(</s><|user|>)") + messages.back().content;
  }
  const auto segments = chat.render(messages, {});
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  EXPECT_EQ(shown(segments->at(0)), expected + "(</s><|assistant|>)");
}

TEST(ChatTemplate, RefusesToGuessWhatATemplateAltered) {
  const ChatTemplate chat =
      load_template("{% for m in messages %}{{ m.content | upper }}{% endfor %}");
  const auto segments = chat.render({{ChatRole::kUser, "why?", {}}}, {});
  ASSERT_FALSE(segments.ok());
  EXPECT_EQ(segments.status().code(), StatusCode::kInvalidArgument);
}

TEST(ChatTemplate, PassesOnWhatTheTemplateRefuses) {
  const ChatTemplate chat = load_template("{{ raise_exception('no system role') }}");
  const auto segments = chat.render({{ChatRole::kSystem, "x", {}}}, {});
  ASSERT_FALSE(segments.ok());
  EXPECT_THAT(segments.status().message(), HasSubstr("no system role"));
}

TEST(ChatTemplate, AnErrorNamesTheTemplatesLine) {
  const ChatTemplate chat = load_template(
      "{{ bos_token }}\n{% for m in messages %}\n{{ m.content + 1 | nothing }}{% endfor %}");
  const auto segments = chat.render({{ChatRole::kUser, "x", {}}}, {});
  ASSERT_FALSE(segments.ok());
  EXPECT_EQ(segments.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(segments.status().message(), HasSubstr("at row 3, column"));
}

TEST(ChatTemplate, ARenderingWithMacrosLeavesNothingInMemory) {
  const ChatTemplate chat = load_template(
      "{% macro one(m) %}[{{ m.content }}]{% endmacro %}"
      "{% for m in messages %}{{ one(m) }}{% endfor %}");
  const std::vector<ChatMessage> messages = {{ChatRole::kUser, std::string(100'000, 'x'), {}}};
  ASSERT_TRUE(chat.render(messages, {}).ok());
  const size_t before = mallinfo2().uordblks;
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(chat.render(messages, {}).ok());
  EXPECT_LT(mallinfo2().uordblks, before + 1'000'000);
}

TEST(ChatTemplate, IsAbsentInAFolderWithoutOne) {
  const TemporaryFolder folder;
  const auto loaded = ChatTemplate::load(folder.path());
  ASSERT_TRUE(loaded.ok());
  EXPECT_FALSE(loaded->has_value());
}

TEST(ChatTemplate, PrefersTheJinjaFile) {
  const TemporaryFolder folder;
  folder.write("tokenizer_config.json", R"({"chat_template": "old", "bos_token": "<s>"})");
  folder.write("chat_template.jinja", "{{ bos_token }}new {{ messages[0].content }}");
  const auto loaded = ChatTemplate::load(folder.path());
  ASSERT_TRUE(loaded.ok() && loaded->has_value());
  const auto segments = (*loaded)->render({{ChatRole::kUser, "x", {}}}, {});
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  EXPECT_EQ((*segments)[0].text, "<s>new x");
}

}  // namespace
}  // namespace anyslot
