// GGUF files through the engine and the program: the same model in another file.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "cli/test_program.h"
#include "model/gguf/test_gguf_models.h"
#include "support/engine_support.h"
#include "support/temporary_folder.h"
#include "text/test_tokenizer.h"

namespace anyslot {
namespace {

using namespace testing_support;
using namespace testing_gguf;
using testing::AllOf;
using testing::HasSubstr;

constexpr const char* kModel = ANYSLOT_MODEL_DIR;
constexpr const char* kQuestion = "Who directed the film The Amber Shore?";
constexpr const char* kAnswer = "Grevoette Valmont";
const std::vector<Document> kDocuments{
    {"Fenholm", "Fenholm is a city in Norway on the river Lorzi. The mayor is Norraina Chereheim.",
     "a"},
    {"The Amber Shore", "The Amber Shore is a 1978 film directed by Grevoette Valmont.", "b"}};

/// The bundled model in one file, with its rag_template.json beside it.
class GgufFolder {
 public:
  explicit GgufFolder(uint32_t matrix_type) : GgufFolder(gguf_of_folder(kModel, matrix_type)) {}
  explicit GgufFolder(const GgufWriter& file)
      : path_(folder_.write("demo-14m.gguf", file.bytes())) {
    folder_.write("rag_template.json", read_bytes(std::string(kModel) + "/rag_template.json"));
  }

  const std::string& path() const { return path_; }
  const TemporaryFolder& folder() const { return folder_; }

 private:
  TemporaryFolder folder_;
  std::string path_;
};

Answer ask(Engine& engine, Method method) {
  const auto segments = engine.render_rag(kDocuments, kQuestion);
  EXPECT_TRUE(segments.ok()) << segments.status().message();
  Request request;
  request.segments = *segments;
  request.method = method;
  request.prompt_logits = true;
  request.sampling.max_tokens = 16;
  return run(engine, request);
}

std::string refusal(const std::string& path) {
  const auto engine = Engine::open(float32_config(path));
  EXPECT_FALSE(engine.ok());
  return engine.ok() ? std::string() : engine.status().message();
}

TEST(GgufEngine, SameTokensAndLogitsAsTheSafetensors) {
  for (const uint32_t type : {kF32, kBF16}) {
    const GgufFolder file(type);
    // Both caches are empty: a warm one changes the shape of a step, and with it the rounding.
    Engine theirs = open_engine(float32_config(kModel));
    Engine ours = open_engine(float32_config(file.path()));
    EXPECT_EQ(ours.model().name, "demo-14m");
    EXPECT_EQ(ours.model().architecture, theirs.model().architecture);
    EXPECT_EQ(ours.model().num_parameters, theirs.model().num_parameters);
    EXPECT_EQ(ours.model().max_model_len, theirs.model().max_model_len);
    EXPECT_TRUE(ours.model().has_tokenizer);
    EXPECT_TRUE(ours.model().block_trained);
    EXPECT_EQ(ours.model().default_method, Method::kLazy);
    for (const Method method : {Method::kLazy, Method::kPrefix}) {
      const Answer expected = ask(theirs, method);
      const Answer answer = ask(ours, method);
      EXPECT_EQ(answer.text, kAnswer);
      EXPECT_EQ(answer.finish_reason, FinishReason::kStop) << "the end token is in the metadata";
      EXPECT_EQ(answer.token_ids, expected.token_ids);
      EXPECT_EQ(answer.prompt_logits, expected.prompt_logits);
    }
    expect_idle(ours);
  }
}

TEST(GgufEngine, SameTokensFromPiecesWithScores) {
  nlohmann::json tokenizer = testing_text::sentencepiece_tokenizer();
  for (const auto& [left, right] : {std::pair("▁", "a"), std::pair("b", "a"), std::pair("a", "b"),
                                    std::pair("▁a", "b"), std::pair("▁", "ab")}) {
    testing_text::add_merge(tokenizer, left, right);
  }
  tokenizer["post_processor"] = {
      {"type", "TemplateProcessing"},
      {"single", {{{"SpecialToken", {{"id", "<s>"}}}}, {{"Sequence", {{"id", "A"}}}}}},
      {"special_tokens", {{"<s>", {{"ids", nlohmann::json::array({1})}}}}}};
  const std::string tiny = std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/llama-plain/";
  const TemporaryFolder folder;
  for (const char* name : {"config.json", "model.safetensors"}) {
    folder.write(name, read_bytes(tiny + name));
  }
  folder.write("tokenizer.json", tokenizer.dump());
  const TemporaryFolder other;
  const std::string file = other.write("model.gguf", gguf_of_folder(folder.path(), kF32).bytes());

  Engine theirs = open_engine(float32_config(folder.path()));
  Engine ours = open_engine(float32_config(file));
  const std::string text = "ab a bab é aab";
  EXPECT_EQ(*ours.tokenize(text, {}), *theirs.tokenize(text, {}));
  EXPECT_LT(ours.tokenize(text, {})->size(), text.size()) << "nothing was joined";
  Request request;
  request.segments.emplace_back().text = text;
  request.sampling.max_tokens = 12;
  request.prompt_logits = true;
  const Answer expected = run(theirs, request);
  const Answer answer = run(ours, request);
  EXPECT_EQ(answer.token_ids, expected.token_ids);
  EXPECT_EQ(answer.text, expected.text);
  EXPECT_EQ(answer.prompt_logits, expected.prompt_logits);
}

TEST(GgufEngine, AnswersWithFewerBits) {
  for (const uint32_t type : {kF16, kQ8_0}) {
    const GgufFolder file(type);
    EngineConfig config;
    config.model_path = file.path();
    Engine engine = open_engine(config);
    EXPECT_EQ(ask(engine, Method::kLazy).text, kAnswer) << type;
  }
}

TEST(GgufEngine, AFolderWithOneFileIsThatFile) {
  const GgufFolder file(kBF16);
  const std::string& folder = file.folder().path();
  EXPECT_EQ(open_engine(float32_config(folder)).model().name, "demo-14m");

  file.folder().write("another.gguf", "");
  EXPECT_THAT(refusal(folder), AllOf(HasSubstr("2 GGUF files; name one of them, such as "),
                                     HasSubstr("another.gguf")));
  file.folder().write("config.json", "{}");
  EXPECT_THAT(refusal(folder), HasSubstr("config.json: ")) << "a Hugging Face folder";
}

TEST(GgufEngine, RefusesInOneLine) {
  const TemporaryFolder folder;
  const std::string bytes = gguf_of_folder(kModel, kBF16).bytes();
  const std::string path = folder.write("cut.gguf", bytes.substr(0, bytes.size() / 2));
  EXPECT_THAT(refusal(path), AllOf(HasSubstr("cut.gguf: tensor "), HasSubstr("truncated")));
  EXPECT_THAT(refusal(folder.write("text.gguf", "not a model")), HasSubstr("no GGUF file"));

  GgufWriter unigram = gguf_of_folder(kModel, kBF16);
  unigram.remove("tokenizer.ggml.model");
  unigram.add_text("tokenizer.ggml.model", "t5");
  EXPECT_THAT(refusal(folder.write("t5.gguf", unigram.bytes())),
              HasSubstr("tokenizer.ggml.model: 't5' is not supported"));

  GgufWriter wrong_list = gguf_of_folder(kModel, kBF16);
  wrong_list.remove("tokenizer.ggml.tokens");
  wrong_list.add_i32s("tokenizer.ggml.tokens", {1, 2});
  EXPECT_THAT(refusal(folder.write("list.gguf", wrong_list.bytes())),
              HasSubstr("tokenizer.ggml.tokens must be a list of strings"));
}

TEST(GgufEngine, TakesTokenIdsWithoutATokenizer) {
  GgufWriter writer = gguf_of_folder(std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/llama-plain", kF32);
  const TemporaryFolder folder;
  Engine engine = open_engine(float32_config(folder.write("tiny.gguf", writer.bytes())));
  EXPECT_FALSE(engine.model().has_tokenizer);
  Request request;
  request.segments = {text_segment({5, 6, 7})};
  request.sampling.max_tokens = 2;
  EXPECT_NE(run(engine, request).finish_reason, FinishReason::kError);
}

TEST(GgufEngine, RendersTheChatTemplateOfTheMetadata) {
  GgufWriter writer = gguf_of_folder(kModel, kBF16);
  writer.add_text("tokenizer.chat_template",
                  "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}"
                  "{{ eos_token }}{% endfor %}");
  const TemporaryFolder folder;
  Engine engine = open_engine(float32_config(folder.write("chat.gguf", writer.bytes())));
  if (!engine.model().has_chat_template) GTEST_SKIP() << "this build renders no chat templates";
  const auto segments = engine.render_chat({{ChatRole::kUser, "Hi <|eot_id|>", {}}}, {});
  ASSERT_TRUE(segments.ok()) << segments.status().message();
  ASSERT_EQ(segments->size(), 1U);
  EXPECT_EQ(segments->front().text, "<|begin_of_text|>[user]Hi <|eot_id|><|eot_id|>");
  const auto ids = engine.tokenize(segments->front().text, segments->front().markup);
  ASSERT_TRUE(ids.ok());
  EXPECT_EQ(ids->front(), 0);
  EXPECT_EQ(std::ranges::count(*ids, 4), 1) << "only the template's own end is a token";
}

TEST(GgufProgram, AsksAFile) {
  const GgufFolder file(kQ8_0);
  const std::string document = file.folder().write("shore.txt", kDocuments[1].text);
  const cli::ProgramResult result =
      cli::run_program({"ask", "--model", file.path(), "--document", document, kQuestion});
  ASSERT_EQ(result.exit_code, 0) << result.error;
  EXPECT_EQ(result.out, std::string(kAnswer) + "\n");
}

TEST(GgufProgram, NamesWhatIsNotThere) {
  const cli::ProgramResult result =
      cli::run_program({"ask", "--model", "/nowhere.gguf", "question"});
  EXPECT_EQ(result.exit_code, 2);
  EXPECT_THAT(result.last_error_line(),
              HasSubstr("there is no folder or GGUF file \"/nowhere.gguf\""));
}

}  // namespace
}  // namespace anyslot
