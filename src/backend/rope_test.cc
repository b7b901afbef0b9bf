#include "backend/rope.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <random>
#include <vector>

namespace anyslot {
namespace {

RopeParameters parameters_of(int rotary_dim, double theta) {
  RopeParameters parameters;
  for (int j = 0; j < rotary_dim / 2; ++j) {
    parameters.inv_freq.push_back(std::pow(theta, -2.0 * j / rotary_dim));
  }
  return parameters;
}

/// The largest difference to cos and sin of the angle, formed in a wider type than the table uses.
double largest_error(const RopeTable& table, int64_t position) {
  const auto pairs = static_cast<size_t>(table.num_pairs());
  std::vector<float> cosine(pairs);
  std::vector<float> sine(pairs);
  table.cos_sin(position, cosine.data(), sine.data());
  double error = 0;
  for (size_t j = 0; j < pairs; ++j) {
    const long double angle = static_cast<long double>(position) *
                              static_cast<long double>(table.parameters().inv_freq[j]);
    error = std::fmax(error, std::fabs(cosine[j] - static_cast<double>(std::cos(angle))));
    error = std::fmax(error, std::fabs(sine[j] - static_cast<double>(std::sin(angle))));
  }
  return error;
}

TEST(RopeTable, MatchesCosAndSinAtEveryScale) {
  constexpr uint32_t kSeed = 7;
  SCOPED_TRACE(testing::Message() << "seed " << kSeed);
  std::mt19937 random(kSeed);
  for (const double theta : {10000.0, 500000.0}) {
    const RopeTable table(parameters_of(128, theta));
    for (int bits = 0; bits < 31; ++bits) {
      std::uniform_int_distribution<int64_t> position(int64_t{1} << bits, (int64_t{2} << bits) - 1);
      for (int i = 0; i < 50; ++i) {
        const int64_t p = position(random);
        EXPECT_LT(largest_error(table, p), 1e-7) << p;
        EXPECT_LT(largest_error(table, -p), 1e-7) << -p;
      }
    }
  }
}

TEST(RopeTable, MatchesAtTheEdgesOfItsTables) {
  const RopeTable table(parameters_of(96, 10000.0));
  for (const int64_t edge : {int64_t{0}, int64_t{1024}, int64_t{4096}, int64_t{65536},
                             int64_t{131072}, int64_t{1} << 20, (int64_t{1} << 31) - 2}) {
    for (int64_t p = edge - 1; p <= edge + 1; ++p) {
      EXPECT_LT(largest_error(table, p), 1e-7) << p;
      EXPECT_LT(largest_error(table, -p), 1e-7) << -p;
    }
  }
}

TEST(RopeTable, PositionZeroDoesNotTurn) {
  const RopeTable table(parameters_of(16, 10000.0));
  std::vector<float> cosine(8);
  std::vector<float> sine(8);
  table.cos_sin(0, cosine.data(), sine.data());
  EXPECT_EQ(cosine, std::vector<float>(8, 1.0F));
  EXPECT_EQ(sine, std::vector<float>(8, 0.0F));
}

TEST(RopeTable, NoPairsIsAllowed) {
  const RopeTable table(RopeParameters{});
  EXPECT_EQ(table.num_pairs(), 0);
  table.cos_sin(12345, nullptr, nullptr);
}

}  // namespace
}  // namespace anyslot
