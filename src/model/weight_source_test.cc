#include "model/weight_source.h"

#include <gtest/gtest.h>

#include <cmath>
#include <variant>
#include <vector>

#include "model/model_config.h"

namespace anyslot {
namespace {

std::vector<bf16_t> values(const LoadedTensor& tensor) {
  const auto* data = tensor.view.row_as<bf16_t>(0);
  return {data, data + tensor.view.rows * tensor.view.cols};
}

std::vector<bf16_t> random_values(uint64_t seed, int num_threads, const WeightRef& weight) {
  const auto tensor = random_weights(seed, num_threads)->load(weight);
  EXPECT_TRUE(tensor.ok()) << tensor.status().message();
  EXPECT_EQ(tensor->view.dtype, DType::kBFloat16);
  EXPECT_EQ(tensor->view.rows, weight.shape.size() == 1 ? 1 : weight.shape.front());
  EXPECT_EQ(tensor->view.cols, weight.shape.back());
  return values(*tensor);
}

TEST(RandomWeights, DependOnSeedAndNameAlone) {
  const WeightRef q{"model.layers.0.self_attn.q_proj.weight", {700, 500}};
  const std::vector<bf16_t> first = random_values(1, 1, q);
  EXPECT_EQ(random_values(1, 2, q), first) << "threads do not matter";
  EXPECT_NE(random_values(2, 1, q), first);
  EXPECT_NE(random_values(1, 1, {"model.layers.1.self_attn.q_proj.weight", {700, 500}}), first);
}

TEST(RandomWeights, MatricesKeepTheSizeOfWhatTheyMultiply) {
  for (const int64_t cols : {64, 2048}) {
    double squares = 0;
    for (const bf16_t value : random_values(1, 2, {"matrix", {300, cols}})) {
      squares += double{bf16_to_float(value)} * bf16_to_float(value);
    }
    EXPECT_NEAR(squares / 300, 1.0, 0.03) << cols;  // of a row
  }
}

TEST(RandomWeights, NormsAreOne) {
  for (const bf16_t value : random_values(1, 1, {"model.norm.weight", {40}})) {
    EXPECT_EQ(bf16_to_float(value), 1.0F);
  }
}

TEST(RandomWeights, FingerprintsTellSeedsApart) {
  EXPECT_EQ(random_weights(1, 1)->fingerprint(), random_weights(1, 2)->fingerprint());
  EXPECT_NE(random_weights(1, 1)->fingerprint(), random_weights(2, 1)->fingerprint());
}

TEST(Shapes, AreThoseOfTheModels) {
  struct Expectation {
    const char* file;
    int64_t parameters;  // as published
  };
  for (const Expectation& expected : {Expectation{"llama-3.2-1b.json", 1'235'814'400},
                                      Expectation{"llama-3.1-8b.json", 8'030'261'248}}) {
    const auto config =
        load_config_file(std::string(ANYSLOT_SOURCE_DIR) + "/bench/shapes/" + expected.file);
    ASSERT_TRUE(config.ok()) << config.status().message();
    const ModelDescription model = find_architecture(config->architecture)->describe(*config);
    int64_t parameters = 0;
    const auto add = [&](const WeightRef& weight) {
      int64_t count = 1;
      for (const int64_t dimension : weight.shape) count *= dimension;
      parameters += count;
    };
    add(model.embedding);
    add(model.final_norm);
    if (model.lm_head) add(*model.lm_head);
    for (const LayerDescription& layer : model.layers) {
      add(layer.attention_norm.value());
      add(layer.mlp_norm.value());
      for (const LinearRef* linear : {&layer.q, &layer.k, &layer.v, &layer.o, &layer.mlp.gate,
                                      &layer.mlp.up, &layer.mlp.down}) {
        add(linear->tensor);
      }
    }
    EXPECT_EQ(parameters, expected.parameters) << expected.file;
    EXPECT_TRUE(std::holds_alternative<Llama3RopeScaling>(config->rope.scaling)) << expected.file;
  }
}

}  // namespace
}  // namespace anyslot
