#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "backend/cpu/kernel_list.h"
#include "backend/cpu/test_kernels.h"

namespace anyslot::cpu {
namespace {

constexpr uint32_t kSeed = 20250111;

TEST(KernelList, IsOrderedFromTheSlowestToTheFastest) {
  std::vector<std::string> names;
  for (const KernelSet& set : kernel_sets()) names.emplace_back(set.table->name);
  EXPECT_THAT(names, testing::ElementsAre("avx2", "avx512", "avx512_bf16"));
}

TEST(KernelList, TakesTheFastestThatTheMachineHasAndTheLimitAllows) {
  const CpuFeatures old{true, false, false};
  const CpuFeatures middle{true, true, false};
  const CpuFeatures recent{true, true, true};
  const auto chosen = [](std::string_view limit, const CpuFeatures& features) {
    const auto kernels = choose_kernels(limit, features);
    return kernels.ok() ? std::string((*kernels)->name) : kernels.status().message();
  };
  EXPECT_EQ(chosen("", old), "avx2");
  EXPECT_EQ(chosen("avx512_bf16", old), "avx2");
  EXPECT_EQ(chosen("", middle), "avx512");
  EXPECT_EQ(chosen("avx512_bf16", middle), "avx512");
  EXPECT_EQ(chosen("avx2", middle), "avx2");
  EXPECT_EQ(chosen("", recent), "avx512_bf16");
  EXPECT_EQ(chosen("avx512", recent), "avx512");
  EXPECT_EQ(chosen("avx2", recent), "avx2");
}

TEST(KernelList, NamesWhatItCannotServe) {
  const auto unknown = choose_kernels("sse9", {true, true, true});
  EXPECT_EQ(unknown.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(unknown.status().message(), testing::HasSubstr("sse9"));
  EXPECT_THAT(unknown.status().message(), testing::HasSubstr("avx2, avx512, avx512_bf16"));
  const auto none = choose_kernels("", {false, false, false});
  EXPECT_EQ(none.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(none.status().message(), testing::HasSubstr("reference"));
}

TEST(Exp, IsExactTo2e7OfItsSize) {
  std::vector<float> x;
  for (double value = -87.2; value < 88.2; value += 0.00037) x.push_back(static_cast<float>(value));
  for (float value = 1e-30F; value < 1; value *= 7) {
    x.push_back(value);
    x.push_back(-value);
  }
  x.push_back(0);
  for (const KernelTable* kernels : usable_kernels()) {
    std::vector<float> actual(x.size());
    kernels->exp(x.data(), actual.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(double{x[i]});
      worst = std::max(worst, std::abs(actual[i] - expected) / expected);
    }
    EXPECT_LT(worst, 2e-7) << kernels->name;
    EXPECT_EQ(actual.back(), 1.0F) << kernels->name;
  }
}

TEST(Exp, MaskedScoresWeighNothingAndNanStays) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> x = {-infinity, -1e30F, -200.0F, std::nanf(""), 500.0F};
  for (const KernelTable* kernels : usable_kernels()) {
    std::vector<float> actual(x.size());
    kernels->exp(x.data(), actual.data(), static_cast<int64_t>(x.size()));
    EXPECT_EQ(actual[0], 0.0F) << kernels->name;
    EXPECT_EQ(actual[1], 0.0F) << kernels->name;
    EXPECT_EQ(actual[2], 0.0F) << kernels->name;
    EXPECT_TRUE(std::isnan(actual[3])) << kernels->name;
    EXPECT_GT(actual[4], 1e38F) << kernels->name;
  }
}

/// What weights are of: each rung's kernels for one type of KV.
struct WeightKernels {
  std::string name;
  const KvKernels* kernels;
  double bound;  // of a weight's error, of its size
};

std::vector<WeightKernels> weight_kernels() {
  std::vector<WeightKernels> all;
  for (const KernelTable* table : usable_kernels()) {
    all.push_back({std::string(table->name) + " float32", table->float32_kv, 2e-7});
    all.push_back({std::string(table->name) + " bfloat16", table->bfloat16_kv, 1.1e-4});
    all.push_back({std::string(table->name) + " fp8_e4m3", table->fp8_kv, 1.1e-4});
  }
  return all;
}

TEST(Exp2, IsExactEnoughForTheTypeOfKv) {
  std::vector<float> x;
  for (double value = -125.9; value < 9; value += 0.00037) x.push_back(static_cast<float>(value));
  x.push_back(0);
  for (const WeightKernels& weights : weight_kernels()) {
    std::vector<float> actual(x.size());
    weights.kernels->exp2(x.data(), actual.data(), static_cast<int64_t>(x.size()));
    double worst = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp2(double{x[i]});
      worst = std::max(worst, std::abs(actual[i] - expected) / expected);
    }
    EXPECT_LT(worst, weights.bound) << weights.name;
    EXPECT_EQ(actual.back(), 1.0F) << weights.name;
  }
}

TEST(Exp2, HiddenScoresWeighNothingAndNanStays) {
  const std::vector<float> x = {-1e30F, -1e4F, -151.0F, std::nanf("")};
  for (const WeightKernels& weights : weight_kernels()) {
    std::vector<float> actual(x.size());
    weights.kernels->exp2(x.data(), actual.data(), static_cast<int64_t>(x.size()));
    EXPECT_THAT(std::vector<float>(actual.begin(), actual.begin() + 3), testing::Each(0.0F))
        << weights.name;
    EXPECT_TRUE(std::isnan(actual[3])) << weights.name;
  }
}

/// One head of a block of keys, [token][d], and where its elements lie when packed.
class PackedKeys {
 public:
  PackedKeys(int head_dim, DType dtype) : dtype_(dtype) {
    bytes_.resize(static_cast<size_t>(head_dim) * kBlockTokens);
  }
  std::byte* data() { return reinterpret_cast<std::byte*>(bytes_.data()); }
  float get(int token, int d) const { return load_element(bytes_.data(), dtype_, index(token, d)); }
  void set(int token, int d, float value) {
    store_element(bytes_.data(), dtype_, index(token, d), value);
  }

 private:
  size_t index(int token, int d) const {
    const int pack = pack_of(dtype_);
    return static_cast<size_t>(d / pack * kBlockTokens * pack + token * pack + d % pack);
  }
  DType dtype_;
  std::vector<float> bytes_;
};

/// Turns every way of splitting head_dim 48 into turned and standing dimensions, odd numbers of
/// pairs included.
class TurnBlock : public testing::TestWithParam<DType> {
 protected:
  static constexpr int kHeadDim = 48;

  /// angle(token, pair) is what the kernel was asked for.
  template <typename Angle>
  void expect_turned(const PackedKeys& before, const PackedKeys& after, int pairs,
                     const Angle& angle) {
    const double rounding = GetParam() == DType::kFloat32    ? 1e-6
                            : GetParam() == DType::kBFloat16 ? std::ldexp(1.0, -8)
                                                             : std::ldexp(1.0, -4);
    const double smallest = GetParam() == DType::kFloat8E4M3 ? std::ldexp(1.0, -10) : 0;
    for (int t = 0; t < kBlockTokens; ++t) {
      for (int d = 0; d < kHeadDim; ++d) {
        double expected = before.get(t, d);
        if (d < 2 * pairs) {
          const int j = d % pairs;
          const double first = before.get(t, j);
          const double second = before.get(t, j + pairs);
          const double c = std::cos(angle(t, j));
          const double s = std::sin(angle(t, j));
          expected = d < pairs ? first * c - second * s : second * c + first * s;
        }
        const double bound = d < 2 * pairs ? rounding * std::abs(expected) + smallest + 1e-6 : 0;
        ASSERT_NEAR(after.get(t, d), expected, bound) << "token " << t << ", dimension " << d;
      }
    }
  }
};

TEST_P(TurnBlock, ByOneAngleAndByTheAngleOfEachToken) {
  std::mt19937 random(kSeed);
  std::normal_distribution<float> normal;
  for (const KernelTable* kernels : usable_kernels()) {
    const KvKernels& kv = kv_kernels_of(*kernels, GetParam());
    for (const int pairs : {0, 1, 2, 7, 8, 12, 23, 24}) {
      SCOPED_TRACE(testing::Message()
                   << kernels->name << ", " << pairs << " pairs, seed " << kSeed);
      PackedKeys before(kHeadDim, GetParam());
      for (int t = 0; t < kBlockTokens; ++t) {
        for (int d = 0; d < kHeadDim; ++d) before.set(t, d, normal(random));
      }
      std::vector<float> cosine(pairs);
      std::vector<float> sine(pairs);
      std::vector<float> token_cosine(pairs * kBlockTokens);
      std::vector<float> token_sine(pairs * kBlockTokens);
      const auto base = [](int j) { return 0.3 + j; };
      const auto step = [](int j) { return 1.0 / (1 + j); };
      for (int j = 0; j < pairs; ++j) {
        cosine[j] = static_cast<float>(std::cos(base(j)));
        sine[j] = static_cast<float>(std::sin(base(j)));
        for (int t = 0; t < kBlockTokens; ++t) {
          token_cosine[j * kBlockTokens + t] = static_cast<float>(std::cos(t * step(j)));
          token_sine[j * kBlockTokens + t] = static_cast<float>(std::sin(t * step(j)));
        }
      }
      const Turn turn{cosine.data(), sine.data(), pairs};
      PackedKeys after(kHeadDim, GetParam());
      kv.turn_block(before.data(), before.data(), after.data(), kHeadDim, turn);
      expect_turned(before, after, pairs, [&](int, int j) { return base(j); });
      std::vector<float> both_cosine(token_cosine.size());
      std::vector<float> both_sine(token_cosine.size());
      kv.add_token_turns(turn, token_cosine.data(), token_sine.data(), both_cosine.data(),
                         both_sine.data());
      kv.turn_block_by_token(before.data(), before.data(), after.data(), kHeadDim, pairs,
                             both_cosine.data(), both_sine.data());
      expect_turned(before, after, pairs, [&](int t, int j) { return base(j) + t * step(j); });
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TurnBlock,
                         testing::Values(DType::kFloat32, DType::kBFloat16, DType::kFloat8E4M3),
                         [](const auto& test) { return std::string(dtype_name(test.param)); });

/// Row r's score of key t is slopes[r] * t: scores that grow slowly, so that weights above 1 are
/// kept, that grow so fast that everything before vanishes, and that fall. The value of key t is
/// sin(t).
TEST(Attend, FollowsScoresThatGrowFromKeyToKey) {
  constexpr int kHeadDim = 16;
  constexpr int kNumBlocks = 11;
  constexpr int kNumTokens = kNumBlocks * kBlockTokens - 3;
  const std::vector<float> slopes = {0.0F, 0.01F, 0.06F, 0.1F, 0.5F, 3.0F, 40.0F, -0.02F, -2.0F};
  const auto num_rows = static_cast<int>(slopes.size());
  std::vector<float> keys(kNumBlocks * kBlockTokens * kHeadDim);  // d-major in each block
  std::vector<float> values(keys.size());                         // token-major
  std::vector<const std::byte*> key_blocks;
  std::vector<const std::byte*> value_blocks;
  for (int b = 0; b < kNumBlocks; ++b) {
    float* block = keys.data() + b * kBlockTokens * kHeadDim;
    key_blocks.push_back(reinterpret_cast<const std::byte*>(block));
    value_blocks.push_back(
        reinterpret_cast<const std::byte*>(values.data() + b * kBlockTokens * kHeadDim));
    for (int t = 0; t < kBlockTokens; ++t) {
      block[t] = static_cast<float>(b * kBlockTokens + t);
      for (int d = 0; d < kHeadDim; ++d) {
        values[(b * kBlockTokens + t) * kHeadDim + d] = std::sin(block[t]);
      }
    }
  }
  struct alignas(64) Memory {
    float queries[kHeadDim * kHeadDim];
    float outputs[kHeadDim * kHeadDim];
    float sums[kHeadDim * kMaxLanes];
    float starts[kHeadDim];
    float limits[kHeadDim];
    int32_t begins[kHeadDim];
    int32_t ends[kHeadDim];
  };
  for (const KernelTable* table : usable_kernels()) {
    const KvKernels& kv = *table->float32_kv;
    Memory memory;
    const AttentionTile tile{.num_rows = num_rows,
                             .group = 1,
                             .head_dim = kHeadDim,
                             .queries = memory.queries,
                             .starts = memory.starts,
                             .limits = memory.limits,
                             .sums = memory.sums,
                             .outputs = memory.outputs,
                             .begins = memory.begins,
                             .ends = memory.ends};
    kv.reset(tile);
    for (int r = 0; r < num_rows; ++r) {
      std::vector<float> query(kHeadDim);
      query[0] = slopes[r];
      kv.set_query(tile, r, query.data(), {}, 1.0F);
    }
    const std::vector<int32_t> begins(num_rows, 0);
    const std::vector<int32_t> ends(num_rows, kNumTokens);
    kv.attend(&tile, 1,
              {key_blocks.data(), value_blocks.data(), kNumBlocks, kTileBlocks, kNumBlocks,
               begins.data(), ends.data()});
    for (int r = 0; r < num_rows; ++r) {
      const double largest = std::max(0.0, double{slopes[r]} * (kNumTokens - 1));
      double sum = 0;
      double expected = 0;
      for (int t = 0; t < kNumTokens; ++t) {
        const double weight = std::exp(double{slopes[r]} * t - largest);
        sum += weight;
        expected += weight * std::sin(static_cast<double>(t));
      }
      std::vector<float> out(kHeadDim);
      kv.store_output(tile, r, DType::kFloat32, out.data());
      for (const float value : out) {
        EXPECT_NEAR(value, expected / sum, 1e-5) << table->name << ", slope " << slopes[r];
      }
    }
  }
}

TEST(StoreToken, RoundsToNearestEvenAndKeepsNan) {
  constexpr int kHeadDim = 16;
  std::vector<float> v(kHeadDim, 1.0F);
  v[0] = 1.0F + std::ldexp(1.0F, -8);      // half way, to the even one below
  v[1] = 1.0F + 3 * std::ldexp(1.0F, -8);  // half way, to the even one above
  v[2] = std::nanf("");
  v[3] = -std::numeric_limits<float>::infinity();
  v[4] = std::numeric_limits<float>::max();
  for (const KernelTable* kernels : usable_kernels()) {
    SCOPED_TRACE(kernels->name);
    std::vector<bf16_t> key(kHeadDim * kBlockTokens);
    std::vector<bf16_t> value(kHeadDim * kBlockTokens);
    const TokenSlot slot{reinterpret_cast<std::byte*>(key.data()),
                         reinterpret_cast<std::byte*>(value.data()), 5};
    kernels->bfloat16_kv->store_token(slot, kHeadDim, {}, v.data(), v.data());
    for (int d = 0; d < kHeadDim; ++d) {
      const bf16_t stored_key = key[d / 2 * 32 + 5 * 2 + d % 2];
      const bf16_t stored_value = value[5 / 2 * 2 * kHeadDim + d * 2 + 1];
      EXPECT_EQ(stored_key, stored_value) << d;
      if (d == 2) {
        EXPECT_TRUE(std::isnan(bf16_to_float(stored_value)));
      } else {
        EXPECT_EQ(stored_value, float_to_bf16(v[d])) << d;
      }
    }
  }
}

TEST(MergePartials, EmptyOnesCountForNothing) {
  constexpr int kHeadDim = 16;
  const float none = -std::numeric_limits<float>::infinity();
  const auto partial = [](float value, float largest, float sum) {
    std::vector<float> p(kHeadDim, value);
    p.push_back(largest);
    p.push_back(sum);
    return p;
  };
  const std::vector<float> empty = partial(0, none, 0);
  const std::vector<float> a = partial(2, 1, 3);
  const std::vector<float> b = partial(-1, 40, 0.5F);
  const std::vector<float> far = partial(9, -500, 1);
  const std::vector<const float*> some = {empty.data(), a.data(), far.data(), b.data(),
                                          empty.data()};
  const std::vector<const float*> nothing = {empty.data(), empty.data()};
  const double weight_a = std::exp(1.0 - 40.0) * 3;
  const double expected = (2 * weight_a - 1 * 0.5) / (weight_a + 0.5);
  for (const KernelTable* kernels : usable_kernels()) {
    std::vector<float> out(kHeadDim, 77.0F);
    kernels->merge_partials(some.data(), 5, kHeadDim, DType::kFloat32, out.data());
    for (const float value : out) EXPECT_NEAR(value, expected, 1e-6) << kernels->name;
    kernels->merge_partials(nothing.data(), 2, kHeadDim, DType::kFloat32, out.data());
    EXPECT_THAT(out, testing::Each(0.0F)) << kernels->name;
  }
}

}  // namespace
}  // namespace anyslot::cpu
