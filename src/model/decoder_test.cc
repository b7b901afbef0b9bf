#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "model/architecture.h"
#include "model/test_decoder.h"
#include "model/test_goldens.h"
#include "model/weight_list.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

struct Case {
  std::string backend;
  std::string golden;
};

void PrintTo(const Case& c, std::ostream* out) { *out << c.backend << " " << c.golden; }

class GoldenDecoder : public ::testing::TestWithParam<Case> {
 protected:
  GoldenDecoder()
      : golden(GetParam().golden),
        model(GetParam().backend, DType::kFloat32, golden_dir(GetParam().golden)) {}

  void expect_near(std::span<const float> actual, std::span<const float> expected) {
    const double error = relative_error(actual, expected);
    EXPECT_LE(error, kTolerance);
    largest_error = std::max(largest_error, error);
  }
  void TearDown() override {
    RecordProperty("largest_error", std::to_string(largest_error));
    if (largest_error > 0) std::printf("error: %.2e of the largest logit\n", largest_error);
  }

  /// The golden's documents and its query, each at its place in the prompt.
  struct Prompt {
    std::vector<TestSpan> documents;
    std::vector<int64_t> starts;
    TestSpan query;
    int64_t query_start = 0;

    std::vector<Placement> placements() const {
      std::vector<Placement> all;
      for (size_t i = 0; i < documents.size(); ++i) {
        all.push_back(placement_of(documents[i], starts[i], documents[i].size()));
      }
      return all;
    }
  };
  Prompt make_prompt(KeyForm documents) {
    Prompt prompt;
    const int query = golden.segment_of_token.back();
    for (int i = 0; i < query; ++i) {
      prompt.documents.push_back(model.blocks.span(golden.segment(i), 0, documents));
      prompt.starts.push_back(golden.segment_begin(i));
    }
    prompt.query = model.blocks.span(golden.segment(query));
    prompt.query_start = golden.segment_begin(query);
    return prompt;
  }
  std::span<const float> query_logits() const {
    return golden.rows(golden.block_logits, golden.segment_begin(golden.segment_of_token.back()),
                       golden.size());
  }

  Golden golden;
  TestModel model;
  double largest_error = 0;
};

TEST_P(GoldenDecoder, FullAttentionInOneStep) {
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  expect_near(model.forward(plan), golden.full_logits);
}

TEST_P(GoldenDecoder, ChunkedPrefillIsTheSame) {
  const TestSpan span = model.blocks.span(golden.token_ids);
  int64_t begin = 0;
  for (const int64_t size : {1, 5, 16, 27, 22, 1}) {
    StepPlan plan;
    add_sequence(plan, span, 0, begin, begin + size, {}, sample_all);
    expect_near(model.forward(plan), golden.rows(golden.full_logits, begin, begin + size));
    begin += size;
  }
  ASSERT_EQ(begin, span.size());
}

TEST_P(GoldenDecoder, OnlySampledRowsHaveLogits) {
  const TestSpan span = model.blocks.span(golden.token_ids);
  const TestSpan other = model.blocks.span(std::span(golden.token_ids).first(40));
  StepPlan plan;
  add_sequence(plan, span, 0, 0, 33, {}, [](int64_t i) { return i == 7 || i == 32; });
  add_sequence(plan, other, 0, 0, 40, {}, sample_none);
  const std::vector<float> logits = model.forward(plan);
  ASSERT_EQ(logits.size(), 2 * golden.vocab);
  expect_near(std::span(logits).first(golden.vocab), golden.rows(golden.full_logits, 7, 8));
  expect_near(std::span(logits).last(golden.vocab), golden.rows(golden.full_logits, 32, 33));
}

TEST_P(GoldenDecoder, GreedyStepsGiveTheLikeliestTokens) {
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  std::vector<int32_t> tokens = {-7};
  const Status status = model.decoder->forward_greedy(plan, *model.kv, tokens);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(tokens.size(), golden.token_ids.size());
  for (int64_t i = 0; i < golden.size(); ++i) {
    const auto logits = golden.rows(golden.full_logits, i, i + 1);
    const float largest = *std::ranges::max_element(logits);
    const float chosen = logits[static_cast<size_t>(tokens[static_cast<size_t>(i)])];
    EXPECT_LE(largest - chosen, kTolerance * std::abs(largest)) << "token " << i;
  }
}

TEST_P(GoldenDecoder, DocumentsAndQueryInOneStep) {
  const Prompt prompt = make_prompt(KeyForm::kTurned);
  StepPlan plan;
  for (const TestSpan& document : prompt.documents) {
    add_sequence(plan, document, 0, 0, document.size(), {}, sample_all);
  }
  add_sequence(plan, prompt.query, prompt.query_start, 0, prompt.query.size(), prompt.placements(),
               sample_all);
  expect_near(model.forward(plan), golden.block_logits);
}

TEST_P(GoldenDecoder, DocumentsEncodedBeforeTheQuery) {
  for (const KeyForm form : {KeyForm::kTurned, KeyForm::kRaw}) {
    const Prompt prompt = make_prompt(form);
    StepPlan encode;
    for (const TestSpan& document : prompt.documents) {
      add_sequence(encode, document, 0, 0, document.size(), {}, sample_none);
    }
    EXPECT_TRUE(model.forward(encode).empty());
    StepPlan ask;
    add_sequence(ask, prompt.query, prompt.query_start, 0, prompt.query.size(), prompt.placements(),
                 sample_all);
    expect_near(model.forward(ask), query_logits());
  }
}

TEST_P(GoldenDecoder, CopiesTurnDocumentsToTheirPlaces) {
  const Prompt prompt = make_prompt(KeyForm::kTurned);
  StepPlan encode;
  for (const TestSpan& document : prompt.documents) {
    add_sequence(encode, document, 0, 0, document.size(), {}, sample_none);
  }
  model.forward(encode);

  StepPlan copy_first;  // a step of copies alone, then one that copies and asks
  StepPlan ask;
  std::vector<TestSpan> copies;
  for (size_t i = 0; i < prompt.documents.size(); ++i) {
    const TestSpan& document = prompt.documents[i];
    copies.push_back(model.blocks.span(document.token_ids, prompt.starts[i]));
    for (size_t b = 0; b < document.blocks.size(); ++b) {
      const BlockCopy copy{document.blocks[b], copies[i].blocks[b], kBlockSize, prompt.starts[i]};
      (i < 2 ? copy_first : ask).copies.push_back(copy);
    }
  }
  std::vector<Placement> placements;
  for (size_t i = 0; i < copies.size(); ++i) {
    placements.push_back(placement_of(copies[i], prompt.starts[i], copies[i].size()));
  }
  EXPECT_TRUE(model.forward(copy_first).empty());
  add_sequence(ask, prompt.query, prompt.query_start, 0, prompt.query.size(), placements,
               sample_all);
  expect_near(model.forward(ask), query_logits());
}

TEST_P(GoldenDecoder, ParametersAreThoseOfTheFile) {
  const auto store = TensorStore::open(golden_dir(GetParam().golden));
  int64_t bytes = 0;
  for (const std::string& name : store->names()) {
    bytes += static_cast<int64_t>(store->find(name)->bytes.size());
  }
  EXPECT_EQ(model.decoder->num_parameters(), bytes / 4);
}

TEST(ModelDescription, NamesTheTensorsOfTheFile) {
  for (const std::string name : kGoldenModels) {
    SCOPED_TRACE(name);
    const auto store = TensorStore::open(golden_dir(name));
    const auto config = load_model_config(golden_dir(name));
    ASSERT_TRUE(store.ok() && config.ok());
    const ModelDescription model = find_architecture(config->architecture)->describe(*config);
    std::set<std::string> names;
    for (const WeightPart& part : weight_parts(model)) names.insert(part.tensor.name);
    const std::vector<std::string> stored = store->names();
    EXPECT_EQ(names, std::set(stored.begin(), stored.end()));
  }
}

TEST_P(GoldenDecoder, RefusesTokensOutsideTheVocabulary) {
  for (const int32_t id : {-1, 320}) {
    const TestSpan span = model.blocks.span(std::vector{id});
    StepPlan plan;
    add_sequence(plan, span, 0, 0, 1, {}, sample_all);
    std::vector<float> logits;
    const Status status = model.decoder->forward(plan, *model.kv, logits);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(status.message(), HasSubstr("token id " + std::to_string(id)));
  }
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& backend : backend_names()) {
    for (const char* golden : kGoldenModels) all.push_back({backend, golden});
  }
  return all;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  std::string name = info.param.backend + "_" + info.param.golden;
  std::ranges::replace(name, '-', '_');
  return name;
}

INSTANTIATE_TEST_SUITE_P(, GoldenDecoder, ::testing::ValuesIn(cases()), case_name);

class DecoderOn : public ::testing::TestWithParam<std::string> {};

/// bfloat16 has 8 bits: a rounding is up to 0.4%, and a few of them meet in a logit.
TEST_P(DecoderOn, BFloat16StaysNearFloat32) {
  const Golden golden("llama-plain");
  TestModel model(GetParam(), DType::kBFloat16, golden_dir("llama-plain"));
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  const double error = relative_error(model.forward(plan), golden.full_logits);
  std::printf("bfloat16: %.2e of the largest logit\n", error);
  EXPECT_LE(error, 0.03);
  EXPECT_GT(error, kTolerance);  // it did compute in bfloat16
}

/// The windows of this model hide what is 16 tokens back.
TEST_P(DecoderOn, AWindowAsLongAsThePromptsHidesNothing) {
  const std::string dir = golden_dir("mistral-window");
  const auto golden = TensorStore::open_file(dir + "/golden.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.status().message();
  const auto ids = tensor_values<int32_t>(*golden, "input_ids");
  const auto logits = tensor_values<float>(*golden, "full_logits");
  const size_t vocab = logits.size() / ids.size();
  TestModel model(GetParam(), DType::kFloat32, dir, 16);
  const TestSpan span = model.blocks.span(std::span(ids).first(16));
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  EXPECT_EQ(model.decoder->config().window, 0);
  EXPECT_LE(relative_error(model.forward(plan), std::span(logits).first(16 * vocab)), kTolerance);
}

/// The bundled model: two shards of bfloat16, tied embeddings, a preamble and documents of uneven
/// length.
TEST_P(DecoderOn, DemoModelMatchesTransformers) {
  TestModel model(GetParam(), DType::kFloat32, ANYSLOT_MODEL_DIR);
  const std::string dir = std::string(ANYSLOT_GOLDENS_DIR) + "/demo";
  std::ifstream file(dir + "/cases.json");
  const nlohmann::json cases = nlohmann::json::parse(file);
  const auto segments = cases[0]["segment_token_ids"].get<std::vector<std::vector<int32_t>>>();
  const auto golden = TensorStore::open_file(dir + "/logits.safetensors");
  ASSERT_TRUE(golden.ok()) << golden.status().message();

  StepPlan plan;
  std::vector<TestSpan> documents;
  std::vector<Placement> placements;
  std::vector<int32_t> prompt;
  documents.reserve(segments.size());
  for (size_t i = 0; i + 1 < segments.size(); ++i) {
    documents.push_back(model.blocks.span(segments[i]));
    add_sequence(plan, documents[i], 0, 0, documents[i].size(), {}, sample_none);
    placements.push_back(
        placement_of(documents[i], static_cast<int64_t>(prompt.size()), documents[i].size()));
    prompt.insert(prompt.end(), segments[i].begin(), segments[i].end());
  }
  const TestSpan query = model.blocks.span(segments.back());
  const auto start = static_cast<int64_t>(prompt.size());
  const auto last_of = [](int64_t size) { return [size](int64_t i) { return i == size - 1; }; };
  add_sequence(plan, query, start, 0, query.size(), placements, last_of(query.size()));
  prompt.insert(prompt.end(), segments.back().begin(), segments.back().end());
  const TestSpan full = model.blocks.span(prompt);
  add_sequence(plan, full, 0, 0, full.size(), {}, last_of(full.size()));

  const std::vector<float> logits = model.forward(plan);
  ASSERT_EQ(logits.size(), size_t{2} * 4096);
  const auto block = tensor_values<float>(*golden, "case0.block.last_logits");
  const auto whole = tensor_values<float>(*golden, "case0.full.last_logits");
  const double block_error = relative_error(std::span(logits).first(4096), block);
  const double full_error = relative_error(std::span(logits).last(4096), whole);
  std::printf("largest error: block %.2e, full %.2e of the largest logit\n", block_error,
              full_error);
  EXPECT_LE(block_error, kTolerance);
  EXPECT_LE(full_error, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(, DecoderOn, ::testing::ValuesIn(backend_names()),
                         [](const auto& parameter) { return parameter.param; });

}  // namespace
}  // namespace anyslot
