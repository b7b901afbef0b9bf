#include "model/rope_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <vector>

#include "model/test_config.h"

namespace anyslot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kLlama3[] =
    R"("rope_type":"llama3","factor":8,"low_freq_factor":1.0,"high_freq_factor":4.0,)"
    R"("original_max_position_embeddings":64)";

/// The fields of an object; later ones replace those of the same name.
std::string object_of(const std::string& name, const std::string& fields,
                      const std::string& changes = "") {
  nlohmann::json object = nlohmann::json::parse("{" + fields + "}");
  object.update(nlohmann::json::parse("{" + changes + "}"));
  return "\"" + name + "\":" + object.dump();
}

RopeConfig rope_of(const std::string& fields) {
  const auto config = load_config(config_with(fields));
  EXPECT_TRUE(config.ok()) << fields << ": " << config.status().message();
  return config.ok() ? config->rope : RopeConfig();
}

std::string error_of(const std::string& fields) {
  const auto config = load_config(config_with(fields));
  EXPECT_FALSE(config.ok()) << fields;
  return config.status().message();
}

TEST(RopeConfig, IsPlainWithoutFields) {
  const RopeConfig plain{.theta = 10000.0, .llama3 = {}};
  EXPECT_EQ(rope_of(""), plain);
  EXPECT_EQ(rope_of(R"("rope_scaling":null)"), plain);
  EXPECT_EQ(rope_of(R"("rope_parameters":{"rope_type":"default"})"), plain);
}

TEST(RopeConfig, FindsThetaInEveryPlace) {
  EXPECT_EQ(rope_of(R"("rope_theta":500000)").theta, 500000.0);
  EXPECT_EQ(rope_of(R"("rope_parameters":{"rope_theta":7e5})").theta, 7e5);
  EXPECT_EQ(rope_of(R"("rope_theta":5e5,"rope_parameters":{"rope_theta":7e5})").theta, 7e5);
}

TEST(RopeConfig, ReadsLlama3InEverySpelling) {
  const RopeConfig expected{.theta = 500000.0,
                            .llama3 = Llama3RopeScaling{.factor = 8.0,
                                                        .low_freq_factor = 1.0,
                                                        .high_freq_factor = 4.0,
                                                        .original_max_position_embeddings = 64}};
  const std::string theta = R"("rope_theta":500000.0)";
  const std::string in_scaling = theta + "," + object_of("rope_scaling", kLlama3);
  const std::string in_parameters = object_of("rope_parameters", kLlama3, theta);
  EXPECT_EQ(rope_of(in_parameters), expected);
  EXPECT_EQ(rope_of(in_scaling), expected);
  EXPECT_EQ(rope_of(in_scaling + "," + in_parameters), expected);
  EXPECT_EQ(rope_of(theta + "," +
                    object_of("rope_scaling", kLlama3, R"("rope_type":null,"type":"llama3")")),
            expected);
  EXPECT_EQ(rope_of(theta + "," + object_of("rope_scaling", kLlama3, R"("type":"llama3")")),
            expected);
}

TEST(RopeConfig, FindsTheOriginalContextWhereTransformersDoes) {
  const std::string without =
      object_of("rope_scaling", kLlama3, R"("original_max_position_embeddings":null)");
  EXPECT_EQ(rope_of(without).llama3->original_max_position_embeddings, 256);
  EXPECT_EQ(rope_of(R"("original_max_position_embeddings":32,)" + without)
                .llama3->original_max_position_embeddings,
            32);
}

TEST(RopeConfig, ScalingLeavesTheMaximalLengthAlone) {
  EXPECT_EQ(load_config(config_with(object_of("rope_scaling", kLlama3)))->max_position_embeddings,
            256);
}

struct BadRope {
  std::string fields;
  std::string message;
};

TEST(RopeConfig, RefusesByName) {
  const auto scaling = [](const std::string& changes) {
    return object_of("rope_scaling", kLlama3, changes);
  };
  const BadRope bad_ones[] = {
      {R"("rope_theta":-1)", "rope_theta is -1"},
      {R"("rope_parameters":3)", "rope_parameters is 3; it must be an object"},
      {R"("rope_parameters":{"rope_theta":0})", "rope_parameters: rope_theta is 0"},
      {R"("rope_parameters":{"rope_type":"yarn"})",
       "rope_parameters: rope_type is \"yarn\", which is not supported here; supported: "
       "\"default\", \"llama3\""},
      {R"("rope_scaling":{"type":"linear","factor":2.0})", "rope_scaling: type is \"linear\""},
      {R"("rope_scaling":{"rope_type":3})", "rope_scaling: rope_type is 3"},
      {R"("rope_parameters":{"partial_rotary_factor":0.5})", "partial_rotary_factor is not 1"},
      {R"("partial_rotary_factor":0.5)", "partial_rotary_factor is not 1"},
      {scaling(R"("type":"default")"), "rope_scaling: type and rope_type differ"},
      {scaling(R"("factor":null)"), "rope_scaling: factor is missing; it must be a number"},
      {scaling(R"("factor":0.5)"), "rope_scaling: factor is below 1; it must be at least 1"},
      {scaling(R"("factor":"8")"), "rope_scaling: factor is \"8\""},
      {scaling(R"("low_freq_factor":null)"), "low_freq_factor is missing"},
      {scaling(R"("low_freq_factor":0)"), "low_freq_factor is 0; it must be a number above 0"},
      {scaling(R"("high_freq_factor":null)"), "high_freq_factor is missing"},
      {scaling(R"("low_freq_factor":4.0)"), "high_freq_factor is 4.0; it must be a number above 4"},
      {scaling(R"("original_max_position_embeddings":0)"),
       "original_max_position_embeddings is 0; it must be a whole number from 1"},
      {R"("original_max_position_embeddings":32,)" + scaling(""),
       "original_max_position_embeddings is 64, but beside the object it is 32; keep one of them"},
      {scaling("") + "," + object_of("rope_parameters", kLlama3, R"("factor":4)"),
       "rope_scaling and rope_parameters differ; keep one of them"},
  };
  for (const BadRope& bad : bad_ones) {
    EXPECT_THAT(error_of(bad.fields),
                AllOf(HasSubstr("config.json: "), HasSubstr(bad.message), Not(HasSubstr("\n"))));
  }
}

TEST(RopeConfig, EveryFieldChangesTheFingerprint) {
  std::set<std::string> fingerprints;
  const std::string all_fields[] = {
      "",
      R"("rope_theta":10001)",
      object_of("rope_scaling", kLlama3),
      object_of("rope_scaling", kLlama3, R"("factor":9)"),
      object_of("rope_scaling", kLlama3, R"("low_freq_factor":1.5)"),
      object_of("rope_scaling", kLlama3, R"("high_freq_factor":5)"),
      object_of("rope_scaling", kLlama3, R"("original_max_position_embeddings":65)"),
  };
  for (const std::string& fields : all_fields) {
    fingerprints.insert(load_config(config_with(fields))->fingerprint().hex());
  }
  EXPECT_EQ(fingerprints.size(), std::size(all_fields));
}

/// Values of transformers' rule, evaluated in float64 for Llama 3.1 8B: pair 28 is the last that
/// stays, 35 the first that is eight times slower.
TEST(RopeConfig, Llama3ScalesTheFrequencies) {
  const RopeConfig llama{.theta = 500000.0,
                         .llama3 = Llama3RopeScaling{.factor = 8.0,
                                                     .low_freq_factor = 1.0,
                                                     .high_freq_factor = 4.0,
                                                     .original_max_position_embeddings = 8192}};
  const std::vector<double> inv_freq = describe_rope(llama, 128).inv_freq;
  ASSERT_EQ(inv_freq.size(), 64U);
  const struct {
    size_t pair;
    double inv_freq;
  } expected[] = {
      {0, 1.0},
      {1, 0.8146172338565447},
      {28, 0.0032114459947525913},
      {29, 0.002166570763503359},
      {31, 0.0008567514129196321},
      {32, 0.0005248461609929547},
      {34, 0.00017850781276799638},
      {35, 9.556212353964683e-05},
      {63, 3.068925988914511e-07},
  };
  for (const auto& [pair, value] : expected) {
    EXPECT_NEAR(inv_freq[pair], value, 1e-14 * value) << "pair " << pair;
  }
}

}  // namespace
}  // namespace anyslot
