#include "model/decoder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "model/test_files.h"
#include "model/test_steps.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

constexpr double kTolerance = 1e-5;  // of the largest logit, in float32
constexpr int kNumBlocks = 64;

std::string golden_dir(const std::string& name) {
  return std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/" + name;
}

template <typename T>
std::vector<T> values_of(const TensorStore& store, const std::string& name) {
  const StoredTensor* tensor = store.find(name);
  EXPECT_NE(tensor, nullptr) << name;
  std::vector<T> values(tensor->bytes.size() / sizeof(T));
  std::memcpy(values.data(), tensor->bytes.data(), tensor->bytes.size());
  return values;
}

/// The largest difference, relative to the largest expected value.
double relative_error(std::span<const float> actual, std::span<const float> expected) {
  EXPECT_EQ(actual.size(), expected.size());
  if (actual.size() != expected.size()) return INFINITY;
  double largest = 0;
  double difference = 0;
  for (size_t i = 0; i < expected.size(); ++i) {
    largest = std::max(largest, std::abs(static_cast<double>(expected[i])));
    const double here = std::abs(static_cast<double>(actual[i]) - expected[i]);
    difference = std::isnan(here) ? INFINITY : std::max(difference, here);
  }
  return difference / largest;
}

std::unique_ptr<Backend> make_backend(const std::string& name, DType dtype) {
  const BackendOptions options{.dtype = dtype, .num_threads = 2, .max_isa = ""};
#ifdef ANYSLOT_HAS_CPU_BACKEND
  if (name == "cpu") {
    auto backend = create_cpu_backend(options);
    EXPECT_TRUE(backend.ok()) << backend.status().message();
    return backend.ok() ? std::move(*backend) : nullptr;
  }
#endif
  EXPECT_EQ(name, "reference");
  return create_reference_backend(options);
}

/// A model on a backend, its KV pool, and steps that must succeed.
struct Model {
  std::unique_ptr<Backend> backend;
  std::unique_ptr<Decoder> decoder;
  std::unique_ptr<KvStorage> kv;
  TestBlocks blocks{kNumBlocks};

  Model(const std::string& backend_name, DType dtype, const std::string& dir)
      : backend(make_backend(backend_name, dtype)) {
    auto loaded = Decoder::load(dir, *backend);
    EXPECT_TRUE(loaded.ok()) << loaded.status().message();
    decoder = std::move(*loaded);
    auto storage = backend->create_kv_storage(decoder->kv_shape(dtype, kNumBlocks));
    EXPECT_TRUE(storage.ok()) << storage.status().message();
    kv = std::move(*storage);
  }

  std::vector<float> forward(const StepPlan& plan) {
    std::vector<float> logits = {NAN};  // what was in it must not stay
    const Status status = decoder->forward(plan, *kv, logits);
    EXPECT_TRUE(status.ok()) << status.message();
    return logits;
  }
};

/// A golden file of transformers: one prompt of four documents of 16 tokens and a query of 8.
struct Golden {
  std::vector<int32_t> token_ids;
  std::vector<int32_t> segment_of_token;
  std::vector<float> full_logits;   // [num_tokens, vocab], causal over everything
  std::vector<float> block_logits;  // [num_tokens, vocab], each document alone
  size_t vocab = 0;

  explicit Golden(const std::string& name) {
    const auto store = TensorStore::open_file(golden_dir(name) + "/golden.safetensors");
    EXPECT_TRUE(store.ok()) << store.status().message();
    token_ids = values_of<int32_t>(*store, "input_ids");
    segment_of_token = values_of<int32_t>(*store, "segment_of_token");
    full_logits = values_of<float>(*store, "full_logits");
    block_logits = values_of<float>(*store, "block_logits");
    vocab = full_logits.size() / token_ids.size();
  }

  int64_t size() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t segment_begin(int segment) const {
    return std::ranges::find(segment_of_token, segment) - segment_of_token.begin();
  }
  std::span<const int32_t> segment(int segment) const {
    const auto count = std::ranges::count(segment_of_token, segment);
    return std::span(token_ids).subspan(static_cast<size_t>(segment_begin(segment)),
                                        static_cast<size_t>(count));
  }
  std::span<const float> rows(const std::vector<float>& logits, int64_t begin, int64_t end) const {
    return std::span(logits).subspan(static_cast<size_t>(begin) * vocab,
                                     static_cast<size_t>(end - begin) * vocab);
  }
};

struct Case {
  std::string backend;
  std::string golden;
};

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
  Model model;
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

std::vector<std::string> backend_names() {
#ifdef ANYSLOT_HAS_CPU_BACKEND
  return {"reference", "cpu"};
#else
  return {"reference"};
#endif
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string& backend : backend_names()) {
    for (const char* golden : {"llama-plain", "llama-tied"}) all.push_back({backend, golden});
  }
  return all;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
  return info.param.backend + (info.param.golden == "llama-tied" ? "_tied" : "_plain");
}

INSTANTIATE_TEST_SUITE_P(, GoldenDecoder, ::testing::ValuesIn(cases()), case_name);

class DecoderOn : public ::testing::TestWithParam<std::string> {};

/// bfloat16 has 8 bits: a rounding is up to 0.4%, and a few of them meet in a logit.
TEST_P(DecoderOn, BFloat16StaysNearFloat32) {
  const Golden golden("llama-plain");
  Model model(GetParam(), DType::kBFloat16, golden_dir("llama-plain"));
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  const double error = relative_error(model.forward(plan), golden.full_logits);
  std::printf("bfloat16: %.2e of the largest logit\n", error);
  EXPECT_LE(error, 0.03);
  EXPECT_GT(error, kTolerance);  // it did compute in bfloat16
}

/// The bundled model: two shards of bfloat16, tied embeddings, a preamble and documents of uneven
/// length.
TEST_P(DecoderOn, DemoModelMatchesTransformers) {
  Model model(GetParam(), DType::kFloat32, ANYSLOT_MODEL_DIR);
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
  const auto block = values_of<float>(*golden, "case0.block.last_logits");
  const auto whole = values_of<float>(*golden, "case0.full.last_logits");
  const double block_error = relative_error(std::span(logits).first(4096), block);
  const double full_error = relative_error(std::span(logits).last(4096), whole);
  std::printf("largest error: block %.2e, full %.2e of the largest logit\n", block_error,
              full_error);
  EXPECT_LE(block_error, kTolerance);
  EXPECT_LE(full_error, kTolerance);
}

INSTANTIATE_TEST_SUITE_P(, DecoderOn, ::testing::ValuesIn(backend_names()),
                         [](const auto& parameter) { return parameter.param; });

class BrokenModel : public ::testing::Test {
 protected:
  BrokenModel() : backend(make_backend("reference", DType::kFloat32)) {
    for (const char* name : {"config.json", "model.safetensors"}) {
      folder.write(name, read_bytes(golden_dir("llama-plain") + "/" + name));
    }
  }
  void set_config(const std::string& key, const nlohmann::json& value) {
    nlohmann::json config = nlohmann::json::parse(read_bytes(folder.file("config.json")));
    config[key] = value;
    folder.write("config.json", config.dump());
  }
  Status load() { return Decoder::load(folder.path(), *backend).status(); }

  TemporaryFolder folder;
  std::unique_ptr<Backend> backend;
};

TEST_F(BrokenModel, NamesTheTensorThatDoesNotFitTheConfig) {
  ASSERT_TRUE(load().ok());
  set_config("vocab_size", 321);
  EXPECT_THAT(load().message(), HasSubstr("tensor \"model.embed_tokens.weight\" has shape [320, "
                                          "64], where the model's config needs [321, 64]"));
}

TEST_F(BrokenModel, NamesTheTensorThatIsMissing) {
  set_config("num_hidden_layers", 4);
  const Status status = load();
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("no tensor \"model.layers.3.input_layernorm.weight\""));
}

TEST_F(BrokenModel, TruncatedWeightsAreRefused) {
  const std::string weights = read_bytes(folder.file("model.safetensors"));
  folder.write("model.safetensors", weights.substr(0, weights.size() / 2));
  EXPECT_THAT(load().message(), HasSubstr("the file is truncated or damaged"));
}

TEST(DecoderErrors, AFailedStepLeavesTheDecoderUsable) {
  const Golden golden("llama-plain");
  Model model("reference", DType::kFloat32, golden_dir("llama-plain"));
  const TestSpan span = model.blocks.span(golden.token_ids);
  StepPlan plan;
  add_sequence(plan, span, 0, 0, span.size(), {}, sample_all);
  StepPlan bad = plan;
  bad.rows[3].write_slot = int64_t{kNumBlocks} * kBlockSize;
  std::vector<float> logits;
  const Status status = model.decoder->forward(bad, *model.kv, logits);
  EXPECT_THAT(status.message(), HasSubstr("slot 1024"));
  EXPECT_LE(relative_error(model.forward(plan), golden.full_logits), kTolerance);
}

TEST(DecoderFingerprint, TellsModelsAndTypesApart) {
  const Model plain("reference", DType::kFloat32, golden_dir("llama-plain"));
  const Model again("reference", DType::kFloat32, golden_dir("llama-plain"));
  const Model tied("reference", DType::kFloat32, golden_dir("llama-tied"));
  const Model bfloat16("reference", DType::kBFloat16, golden_dir("llama-plain"));
  EXPECT_EQ(plain.decoder->fingerprint(), again.decoder->fingerprint());
  EXPECT_NE(plain.decoder->fingerprint(), tied.decoder->fingerprint());
  EXPECT_NE(plain.decoder->fingerprint(), bfloat16.decoder->fingerprint());
}

}  // namespace
}  // namespace anyslot
