#include "model/rope_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>
#include <set>
#include <string>
#include <variant>
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
  const RopeConfig plain{.theta = 10000.0, .rotary_dim = 16, .scaling = {}};
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
                            .rotary_dim = 16,
                            .scaling = Llama3RopeScaling{.factor = 8.0,
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
  const auto original = [](const std::string& fields) {
    return std::get<Llama3RopeScaling>(rope_of(fields).scaling).original_max_position_embeddings;
  };
  EXPECT_EQ(original(without), 256);
  EXPECT_EQ(original(R"("original_max_position_embeddings":32,)" + without), 32);
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
      {R"("rope_parameters":{"full_attention":{"rope_type":"yarn","factor":2.0}})",
       "rope_parameters: full_attention is a RoPE of its own"},
      {R"("rope_parameters":{"rope_type":"dynamic","factor":2.0})",
       "rope_parameters: rope_type is \"dynamic\", which is not supported here; supported: "
       "\"default\", \"linear\", \"llama3\", \"yarn\""},
      {R"("rope_scaling":{"type":"mrope"})", "rope_scaling: type is \"mrope\""},
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
      R"("rope_scaling":{"type":"linear","factor":2})",
      R"("rope_scaling":{"type":"linear","factor":3})",
      R"("rope_scaling":{"type":"yarn","factor":2})",
      R"("rope_scaling":{"type":"yarn","factor":2,"beta_fast":16})",
      R"("rope_scaling":{"type":"yarn","factor":2,"beta_slow":2})",
      R"("rope_scaling":{"type":"yarn","factor":2,"truncate":false})",
      R"("rope_scaling":{"type":"yarn","factor":2,"attention_factor":2})",
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
                         .rotary_dim = 128,
                         .scaling = Llama3RopeScaling{.factor = 8.0,
                                                      .low_freq_factor = 1.0,
                                                      .high_freq_factor = 4.0,
                                                      .original_max_position_embeddings = 8192}};
  const std::vector<double> inv_freq = describe_rope(llama).inv_freq;
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

TEST(RopeConfig, LinearScalesAllFrequencies) {
  const RopeConfig linear = rope_of(R"("rope_scaling":{"type":"linear","factor":4.0})");
  const std::vector<double> scaled = describe_rope(linear).inv_freq;
  const std::vector<double> plain = describe_rope(rope_of("")).inv_freq;
  ASSERT_EQ(scaled.size(), 8U);
  for (size_t j = 0; j < plain.size(); ++j) EXPECT_DOUBLE_EQ(scaled[j], plain[j] / 4.0);
}

/// Values of transformers' rule, evaluated in float64 for Qwen 2.5 7B: pair 23 is the last that
/// stays, 40 the first that is four times slower.
TEST(RopeConfig, YarnScalesTheFrequenciesAndTheScores) {
  const RopeConfig qwen =
      rope_of(R"("head_dim":128,"rope_theta":1e6,"rope_scaling":{"type":"yarn","factor":4.0,)"
              R"("original_max_position_embeddings":32768})");
  const RopeParameters parameters = describe_rope(qwen);
  ASSERT_EQ(parameters.inv_freq.size(), 64U);
  const struct {
    size_t pair;
    double inv_freq;
  } expected[] = {
      {0, 1.0},
      {1, 0.8058421877614819},
      {23, 0.006978305848598663},
      {24, 0.005375321490790102},
      {30, 0.0010643609812470017},
      {39, 6.490394320837028e-05},
      {40, 4.445698525097307e-05},
      {63, 3.102344401879299e-07},
  };
  for (const auto& [pair, value] : expected) {
    EXPECT_NEAR(parameters.inv_freq[pair], value, 1e-13 * value) << "pair " << pair;
  }
  EXPECT_DOUBLE_EQ(parameters.attention_factor, 1.2964769927807063);  // (0.1 ln 4 + 1)^2
}

TEST(RopeConfig, YarnTakesTheFactorThatIsGiven) {
  const auto factor = [](const std::string& fields) {
    const std::string yarn = R"("rope_scaling":{"type":"yarn","factor":4.0)";
    return describe_rope(rope_of(yarn + fields + "}")).attention_factor;
  };
  EXPECT_DOUBLE_EQ(factor(R"(,"attention_factor":1.5)"), 2.25);
  EXPECT_DOUBLE_EQ(factor(R"(,"mscale":0.7,"mscale_all_dim":0.7)"), 1.0);
}

class Longrope : public ::testing::Test {
 protected:
  static Expected<ModelConfig> load(int64_t max_model_len, const std::string& changes = "") {
    const std::string lists = R"("short_factor":[1,1,1,2],"long_factor":[1,2,4,8])";
    const TemporaryFolder folder;
    folder.write("config.json",
                 config_with(R"("architectures":["Phi3ForCausalLM"],"head_dim":16,)"
                             R"("partial_rotary_factor":0.5,"max_position_embeddings":131072,)"
                             R"("original_max_position_embeddings":4096,)" +
                             object_of("rope_scaling", R"("type":"longrope",)" + lists, changes)));
    return load_model_config(folder.path(), max_model_len);
  }
};

TEST_F(Longrope, TheLongestPromptChoosesTheFactors) {
  const Expected<ModelConfig> within = load(4096);
  const Expected<ModelConfig> beyond = load(4097);
  ASSERT_TRUE(within.ok() && beyond.ok());
  const RopeParameters few = describe_rope(within->rope);
  const RopeParameters many = describe_rope(beyond->rope);
  const double plain[] = {1.0, 0.1, 0.01, 0.001};  // 10000^(-j/4)
  const double few_factors[] = {1, 1, 1, 2};
  const double many_factors[] = {1, 2, 4, 8};
  ASSERT_EQ(few.inv_freq.size(), 4U);
  ASSERT_EQ(many.inv_freq.size(), 4U);
  for (size_t j = 0; j < 4; ++j) {
    EXPECT_NEAR(few.inv_freq[j], plain[j] / few_factors[j], 1e-15);
    EXPECT_NEAR(many.inv_freq[j], plain[j] / many_factors[j], 1e-15);
  }
  EXPECT_NE(within->fingerprint(), beyond->fingerprint()) << "cached keys differ";
  EXPECT_EQ(load(0)->fingerprint(), beyond->fingerprint()) << "131072, what it was trained for";
}

TEST_F(Longrope, ScoresAreScaledByTheRatioOfTheContexts) {
  for (const int64_t length : {100, 100000}) {
    EXPECT_DOUBLE_EQ(describe_rope(load(length)->rope).attention_factor, 1.4166666666666667);
  }
  EXPECT_DOUBLE_EQ(describe_rope(load(0, R"("attention_factor":1.5)")->rope).attention_factor,
                   2.25);
}

TEST_F(Longrope, ListsMustFitTheHeads) {
  EXPECT_THAT(load(0, R"("short_factor":[1,1])").status().message(),
              HasSubstr("rope_scaling: short_factor has 2 numbers for 4 pairs of dimensions"));
  EXPECT_THAT(load(0, R"("long_factor":[1,1,1,0])").status().message(),
              HasSubstr("long_factor holds 0; it must be a list of numbers above 0"));
  EXPECT_THAT(load(0, R"("long_factor":null)").status().message(),
              HasSubstr("long_factor is missing; it must be a list of numbers"));
}

}  // namespace
}  // namespace anyslot
