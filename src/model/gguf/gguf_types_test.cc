// Each type is held to numbers that are worked out here, from the layouts that ggml publishes: the
// tests write blocks number by number, so that every bit of a block has a known meaning.

#include "model/gguf/gguf_types.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace anyslot {
namespace {

std::string half(float value) {
  const fp16_t bits = float_to_fp16(value);
  std::string bytes(sizeof bits, '\0');
  std::memcpy(bytes.data(), &bits, sizeof bits);
  return bytes;
}

const GgufTensorType& type_named(const std::string& name) {
  for (uint32_t number = 0; number < 64; ++number) {
    const GgufTensorType* type = find_gguf_type(number);
    if (type != nullptr && type->name == name) return *type;
  }
  ADD_FAILURE() << name;
  std::abort();
}

std::vector<float> decode(const std::string& name, const std::string& bytes) {
  const GgufTensorType& type = type_named(name);
  EXPECT_EQ(bytes.size() % type.block_bytes, 0U);
  std::vector<float> out(bytes.size() / type.block_bytes * type.block_elements);
  decode_gguf_blocks(type, std::as_bytes(std::span(bytes)), out);
  return out;
}

/// Whole numbers below `bound`, always the same.
std::vector<int> whole_numbers(size_t count, int bound) {
  std::mt19937 random(count + static_cast<size_t>(bound));
  std::vector<int> numbers(count);
  for (int& number : numbers) number = static_cast<int>(random() % static_cast<unsigned>(bound));
  return numbers;
}

void set_bits(std::string& bytes, size_t byte, int shift, int value) {
  bytes[byte] = static_cast<char>(static_cast<uint8_t>(bytes[byte]) | value << shift);
}

/// Numbers of four bits: byte i has number i below number i + 16.
std::string nibbles_of_32(const std::vector<int>& numbers) {
  std::string bytes(16, '\0');
  for (size_t i = 0; i < 16; ++i) {
    set_bits(bytes, i, 0, numbers[i] % 16);
    set_bits(bytes, i, 4, numbers[i + 16] % 16);
  }
  return bytes;
}

/// The fifth bits, number i in bit i.
std::string fifth_bits_of_32(const std::vector<int>& numbers) {
  std::string bytes(4, '\0');
  for (size_t i = 0; i < 32; ++i) set_bits(bytes, i / 8, static_cast<int>(i % 8), numbers[i] / 16);
  return bytes;
}

TEST(GgufTypes, TheirSizes) {
  const struct {
    const char* name;
    uint32_t number;
    size_t elements;
    size_t bytes;
  } kSizes[] = {{"F32", 0, 1, 4},       {"F16", 1, 1, 2},        {"Q4_0", 2, 32, 18},
                {"Q4_1", 3, 32, 20},    {"Q5_0", 6, 32, 22},     {"Q5_1", 7, 32, 24},
                {"Q8_0", 8, 32, 34},    {"Q4_K", 12, 256, 144},  {"Q5_K", 13, 256, 176},
                {"Q6_K", 14, 256, 210}, {"BF16", 30, 1, 2},      {"Q2_K", 10, 256, 84},
                {"Q3_K", 11, 256, 110}, {"IQ4_XS", 23, 256, 136}};
  for (const auto& size : kSizes) {
    const GgufTensorType* type = find_gguf_type(size.number);
    ASSERT_NE(type, nullptr) << size.name;
    EXPECT_STREQ(type->name, size.name);
    EXPECT_EQ(type->block_elements, size.elements) << size.name;
    EXPECT_EQ(type->block_bytes, size.bytes) << size.name;
  }
  EXPECT_TRUE(find_gguf_type(14)->is_readable());
  EXPECT_FALSE(find_gguf_type(10)->is_readable());
  EXPECT_THAT(supported_gguf_types(), testing::Not(testing::HasSubstr("Q2_K")));
  EXPECT_EQ(find_gguf_type(77), nullptr);
}

TEST(GgufTypes, Q8_0) {
  std::string bytes = half(0.25F);
  for (int i = 0; i < 32; ++i) bytes += static_cast<char>(8 * i - 128);
  const std::vector<float> values = decode("Q8_0", bytes + bytes);
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(values[i], 0.25F * (8.0F * static_cast<float>(i % 32) - 128.0F)) << i;
  }
}

TEST(GgufTypes, BlocksOf32WithFourOrFiveBits) {
  const std::vector<int> four = whole_numbers(32, 16);
  const std::vector<int> five = whole_numbers(32, 32);
  const std::string d = half(0.5F);
  const std::string minimum = half(-3.0F);
  const std::vector<float> q4_0 = decode("Q4_0", d + nibbles_of_32(four));
  const std::vector<float> q4_1 = decode("Q4_1", d + minimum + nibbles_of_32(four));
  const std::vector<float> q5_0 = decode("Q5_0", d + fifth_bits_of_32(five) + nibbles_of_32(five));
  const std::vector<float> q5_1 =
      decode("Q5_1", d + minimum + fifth_bits_of_32(five) + nibbles_of_32(five));
  for (size_t i = 0; i < 32; ++i) {
    EXPECT_EQ(q4_0[i], 0.5F * static_cast<float>(four[i] - 8)) << i;
    EXPECT_EQ(q4_1[i], 0.5F * static_cast<float>(four[i]) - 3.0F) << i;
    EXPECT_EQ(q5_0[i], 0.5F * static_cast<float>(five[i] - 16)) << i;
    EXPECT_EQ(q5_1[i], 0.5F * static_cast<float>(five[i]) - 3.0F) << i;
  }
}

/// Scales and minima of eight groups, six bits each, in twelve bytes.
std::string packed_scales(const std::vector<int>& scales, const std::vector<int>& minima) {
  std::string bytes(12, '\0');
  for (size_t g = 0; g < 4; ++g) {
    set_bits(bytes, g, 0, scales[g]);
    set_bits(bytes, g + 4, 0, minima[g]);
    set_bits(bytes, g + 8, 0, scales[g + 4] % 16);
    set_bits(bytes, g + 8, 4, minima[g + 4] % 16);
    set_bits(bytes, g, 6, scales[g + 4] / 16);
    set_bits(bytes, g + 4, 6, minima[g + 4] / 16);
  }
  return bytes;
}

/// 256 numbers of four bits: of each 64 the first 32 lie below the others.
std::string nibbles_of_256(const std::vector<int>& numbers) {
  std::string bytes(128, '\0');
  for (size_t n = 0; n < 256; ++n) {
    set_bits(bytes, n / 64 * 32 + n % 32, n % 64 < 32 ? 0 : 4, numbers[n] % 16);
  }
  return bytes;
}

TEST(GgufTypes, Q4_KAndQ5_K) {
  const std::vector<int> scales = {1, 17, 33, 63, 0, 21, 42, 62};
  const std::vector<int> minima = {63, 5, 48, 2, 31, 16, 1, 60};
  const std::vector<int> four = whole_numbers(256, 16);
  const std::vector<int> five = whole_numbers(256, 32);
  std::string fifth_bits(32, '\0');
  for (size_t n = 0; n < 256; ++n) {
    set_bits(fifth_bits, n % 32, static_cast<int>(n / 32), five[n] / 16);
  }
  const std::string head = half(0.125F) + half(0.5F) + packed_scales(scales, minima);
  const std::vector<float> q4 = decode("Q4_K", head + nibbles_of_256(four));
  const std::vector<float> q5 = decode("Q5_K", head + fifth_bits + nibbles_of_256(five));
  for (size_t n = 0; n < 256; ++n) {
    const float scale = 0.125F * static_cast<float>(scales[n / 32]);
    const float minimum = 0.5F * static_cast<float>(minima[n / 32]);
    EXPECT_EQ(q4[n], scale * static_cast<float>(four[n]) - minimum) << n;
    EXPECT_EQ(q5[n], scale * static_cast<float>(five[n]) - minimum) << n;
  }
}

TEST(GgufTypes, Q6_K) {
  const std::vector<int> numbers = whole_numbers(256, 64);
  std::string low(128, '\0');
  std::string high(64, '\0');
  std::string scales;
  for (size_t n = 0; n < 256; ++n) {
    const size_t half_block = n / 128;
    const size_t quarter = n % 128 / 32;
    set_bits(low, half_block * 64 + quarter % 2 * 32 + n % 32, quarter < 2 ? 0 : 4,
             numbers[n] % 16);
    set_bits(high, half_block * 32 + n % 32, static_cast<int>(quarter) * 2, numbers[n] / 16);
  }
  for (int group = 0; group < 16; ++group) scales += static_cast<char>(17 * group - 128);
  const std::vector<float> values = decode("Q6_K", low + high + scales + half(0.25F));
  for (size_t n = 0; n < 256; ++n) {
    const float scale = 0.25F * (17.0F * static_cast<float>(n / 16) - 128.0F);
    EXPECT_EQ(values[n], scale * static_cast<float>(numbers[n] - 32)) << n;
  }
}

}  // namespace
}  // namespace anyslot
