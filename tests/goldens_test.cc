// Parity with Hugging Face transformers in float32: logits within 1e-3 of the largest, greedy
// tokens equal.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "model/safetensors.h"
#include "model/test_goldens.h"
#include "support/engine_support.h"

namespace anyslot {
namespace {

using namespace testing_support;
using nlohmann::json;

constexpr double kTolerance = 1e-3;
const std::string kGoldens = ANYSLOT_GOLDENS_DIR;

TensorStore open_store(const std::string& path) {
  auto store = TensorStore::open_file(path);
  EXPECT_TRUE(store.ok()) << store.status().message();
  return std::move(*store);
}

template <typename T>
std::vector<T> read_tensor(const TensorStore& store, const std::string& name) {
  const StoredTensor* tensor = store.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

struct Setting {
  std::string device;
  Method method;
};

std::vector<Setting> every_setting() {
  std::vector<Setting> settings;
  for (const Method method : kAllMethods) settings.push_back({ANYSLOT_TEST_DEVICE, method});
  settings.push_back({"reference", Method::kLazy});
  settings.push_back({"reference", Method::kFull});
  return settings;
}

bool encodes_alone(Method method) { return method != Method::kPrefix && method != Method::kFull; }

class Goldens : public testing::TestWithParam<Setting> {
 protected:
  static EngineConfig config(const std::string& model) {
    EngineConfig config = float32_config(model);
    config.device = GetParam().device;
    config.method = GetParam().method;
    return config;
  }
};

INSTANTIATE_TEST_SUITE_P(Settings, Goldens, testing::ValuesIn(every_setting()),
                         [](const auto& setting) {
                           return setting.param.device + "_" +
                                  std::string(method_name(setting.param.method));
                         });

TEST_P(Goldens, TinyModels) {
  for (const std::string name : kGoldenModels) {
    SCOPED_TRACE(name);
    const std::string folder = kGoldens + "/tiny/" + name;
    if (GetParam().device == "cuda" && std::ranges::count(kRefusedOnGpu, name) > 0) {
      const Expected<Engine> refused = Engine::open(config(folder));
      ASSERT_FALSE(refused.ok());
      EXPECT_NE(refused.status().message().find("not served on a GPU"), std::string::npos);
      continue;
    }
    const TensorStore golden = open_store(folder + "/golden.safetensors");
    const auto ids = read_tensor<int32_t>(golden, "input_ids");
    const bool alone = encodes_alone(GetParam().method);
    const bool has_both = golden.find("block_logits") != nullptr;
    const TensorStore of_documents =
        open_store(folder + (has_both ? "/golden.safetensors" : "/alone.safetensors"));
    const auto segment_of_token = read_tensor<int32_t>(of_documents, "segment_of_token");
    auto expected = alone ? read_tensor<float>(of_documents, "block_logits")
                          : read_tensor<float>(golden, "full_logits");
    const size_t vocab = expected.size() / ids.size();

    Engine engine = open_engine(config(folder));
    Request request;
    request.prompt_logits = true;
    if (alone) {
      for (size_t i = 0; i < ids.size(); ++i) {
        const auto segment = static_cast<size_t>(segment_of_token[i]);
        if (segment == request.segments.size()) request.segments.push_back(document_segment({}));
        request.segments[segment].token_ids.push_back(ids[i]);
      }
      request.segments.back().kind = SegmentKind::kText;
      const size_t text = request.segments.back().token_ids.size();
      expected.erase(expected.begin(), expected.end() - static_cast<std::ptrdiff_t>(text * vocab));
    } else {
      request.segments = {text_segment(ids)};
    }
    EXPECT_LT(relative_difference(run(engine, request).prompt_logits, expected), kTolerance);
    expect_idle(engine);
  }
}

TEST_P(Goldens, DemoModel) {
  std::ifstream file(kGoldens + "/demo/cases.json");
  const json cases = json::parse(file);
  const TensorStore golden = open_store(kGoldens + "/demo/logits.safetensors");
  Engine engine = open_engine(config(ANYSLOT_MODEL_DIR));
  const std::string mode = encodes_alone(GetParam().method) ? "block" : "full";
  // The scalar oracle takes minutes for all of them.
  const size_t num_cases = GetParam().device == "reference" ? 1 : cases.size();
  for (size_t i = 0; i < num_cases; ++i) {
    SCOPED_TRACE(testing::Message() << "case " << i);
    std::vector<Document> documents;
    for (const json& text : cases[i]["documents"]) documents.push_back({std::nullopt, text, ""});
    const auto segments = engine.render_rag(documents, cases[i]["question"]);
    ASSERT_TRUE(segments.ok()) << segments.status().message();
    Request request;
    request.segments = *segments;
    request.prompt_logits = true;
    request.sampling.max_tokens = 24;
    const Answer answer = run(engine, request);
    EXPECT_EQ(answer.token_ids, cases[i][mode]["greedy_token_ids"].get<std::vector<int32_t>>());

    const std::string prefix = "case" + std::to_string(i) + "." + mode;
    const auto last = read_tensor<float>(golden, prefix + ".last_logits");
    const auto largest = read_tensor<float>(golden, prefix + ".query_logits_max");
    const auto vocab = static_cast<std::ptrdiff_t>(last.size());
    ASSERT_GE(answer.prompt_logits.size(), last.size() * largest.size());
    const auto end = answer.prompt_logits.end();
    EXPECT_LT(relative_difference({end - vocab, end}, last), kTolerance);
    std::vector<float> row_maxima;
    for (auto row = static_cast<std::ptrdiff_t>(largest.size()); row > 0; --row) {
      row_maxima.push_back(*std::max_element(end - row * vocab, end - (row - 1) * vocab));
    }
    EXPECT_LT(relative_difference(row_maxima, largest), kTolerance);
  }
  expect_idle(engine);
}

}  // namespace
}  // namespace anyslot
