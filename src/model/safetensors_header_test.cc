#include "model/safetensors_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/test_files.h"

namespace anyslot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

/// Parses out of a heap block of exactly the file's size, so that a sanitizer sees any read past
/// it.
Expected<std::vector<TensorEntry>> parse(const std::string& bytes) {
  const std::unique_ptr<std::byte[]> exact(new std::byte[bytes.size()]);
  std::memcpy(exact.get(), bytes.data(), bytes.size());
  return parse_safetensors_header("w.safetensors", {exact.get(), bytes.size()});
}

std::string entry(const std::string& name, const std::string& dtype, const std::string& shape,
                  const std::string& offsets) {
  std::string text = "\"";
  text += name + "\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape;
  text += ",\"data_offsets\":" + offsets + "}";
  return text;
}

/// A file whose header is these entries.
std::string file_of(std::initializer_list<std::string> entries, size_t data_bytes) {
  std::string header = "{";
  for (const std::string& text : entries) {
    if (header.size() > 1) header += ",";
    header += text;
  }
  header += "}";
  return safetensors_bytes(header, data_bytes);
}

TEST(SafetensorsHeader, ReadsTensorsInOrderOfTheirData) {
  const std::string bytes =
      file_of({R"("__metadata__":{"format":"pt"})", entry("a", "BF16", "[3]", "[8,14]"),
               entry("b", "F32", "[2,1]", "[0,8]"), entry("none", "F32", "[0,7]", "[14,14]"),
               entry("scalar", "I64", "[]", "[14,22]")},
              22);
  const auto entries = parse(bytes);
  ASSERT_TRUE(entries.ok()) << entries.status().message();
  ASSERT_EQ(entries->size(), 4U);
  const size_t data = bytes.size() - 22;
  EXPECT_EQ((*entries)[0].name, "b");
  EXPECT_EQ((*entries)[0].shape, (std::vector<int64_t>{2, 1}));
  EXPECT_EQ((*entries)[0].begin, data);
  EXPECT_EQ((*entries)[1].name, "a");
  EXPECT_EQ((*entries)[1].dtype, "BF16");
  EXPECT_EQ((*entries)[1].end, data + 14);
  EXPECT_EQ((*entries)[2].name, "none");
  EXPECT_EQ((*entries)[3].name, "scalar");
}

struct BadFile {
  const char* what;
  std::string bytes;
  const char* message;  // part of it
};

void PrintTo(const BadFile& file, std::ostream* out) { *out << file.what; }

std::string one(const std::string& dtype, const std::string& shape, const std::string& offsets,
                size_t data_bytes) {
  return file_of({entry("t", dtype, shape, offsets)}, data_bytes);
}

std::vector<BadFile> bad_files() {
  const std::string huge_length = std::string("\xff\xff\xff\xff\xff\xff\xff\x7f", 8) + "{}";
  const std::string long_header = std::string("\x40\0\0\0\0\0\0\0", 8) + "{}";
  return {
      {"empty", "", "too few"},
      {"only part of the length", "abc", "too few"},
      {"length beyond the format", huge_length, "no safetensors file"},
      {"length beyond the file", long_header, "does not fit a file of 10; it is truncated"},
      {"no header", safetensors_bytes("", 4), "invalid JSON at line 1"},
      {"broken JSON", safetensors_bytes("{\"t\":", 4), "header: invalid JSON at line 1, column"},
      {"JSON of another kind", safetensors_bytes("[1]", 4), "not a JSON object"},
      {"invalid UTF-8", safetensors_bytes("{\"\xff\":1}", 4), "invalid JSON"},
      {"number out of range", safetensors_bytes("{\"t\":1e999}", 4), "out of range"},
      {"entry of another kind", safetensors_bytes("{\"t\":3}", 4), "\"t\": its entry is not"},
      {"no shape", safetensors_bytes("{\"t\":{\"dtype\":\"F32\",\"data_offsets\":[0,4]}}", 4),
       "lacks dtype, shape or data_offsets"},
      {"dtype of another kind",
       safetensors_bytes("{\"t\":{\"dtype\":1,\"shape\":[1],\"data_offsets\":[0,4]}}", 4),
       "dtype is not a string"},
      {"repeated name",
       file_of({entry("t", "F32", "[1]", "[0,4]"), entry("t", "F32", "[1]", "[4,8]")}, 8),
       "key \"t\" stands twice"},
      {"negative dimension", one("F32", "[-1]", "[0,4]", 4), "whole number >= 0"},
      {"fractional dimension", one("F32", "[1.0]", "[0,4]", 4), "whole number >= 0"},
      {"dimension past int64", one("F32", "[9223372036854775808]", "[0,4]", 4), "whole number"},
      {"shape of another kind", one("F32", "4", "[0,4]", 4), "shape is not a list"},
      {"too many dimensions", one("F32", "[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]", "[0,4]", 4),
       "shape is not a list of at most 16"},
      {"overflowing product", one("F32", "[4294967296,4294967296]", "[0,4]", 4), "overflows"},
      {"overflowing bytes", one("F32", "[4611686018427387905]", "[0,4]", 4), "does not fill"},
      {"too few bytes", one("F32", "[2]", "[0,4]", 4),
       "shape [2] of F32 does not fill its 4 bytes"},
      {"too many bytes", one("BF16", "[1]", "[0,4]", 4), "does not fill its 4 bytes"},
      {"negative offset", one("F32", "[1]", "[-4,0]", 4), "data_offsets are not"},
      {"one offset", one("F32", "[1]", "[4]", 4), "data_offsets are not"},
      {"offsets reversed", one("F32", "[1]", "[4,0]", 4), "end before they begin"},
      {"offsets past the file", one("F32", "[2]", "[0,8]", 4),
       "reach past the file's 4 bytes of data; the file is truncated"},
      {"offsets near the end of uint64", one("F32", "[1]", "[0,9223372036854775807]", 4),
       "reach past the file"},
      {"overlap",
       file_of({entry("t", "F32", "[2]", "[0,8]"), entry("u", "F32", "[1]", "[4,8]")}, 8),
       "tensor \"u\": its data overlap"},
      {"gap", one("F32", "[1]", "[4,8]", 8), "belong to no tensor"},
      {"trailing bytes", one("F32", "[1]", "[0,4]", 9), "5 bytes at its end belong to no tensor"},
      {"line breaks in a name", safetensors_bytes("{\"a\\nb\":3}", 4), "tensor \"a\\nb\""},
  };
}

class BadHeader : public ::testing::TestWithParam<BadFile> {};

TEST_P(BadHeader, GivesOneClearLine) {
  const auto entries = parse(GetParam().bytes);
  ASSERT_FALSE(entries.ok());
  EXPECT_EQ(entries.status().code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(
      entries.status().message(),
      AllOf(StartsWith("w.safetensors: "), HasSubstr(GetParam().message), Not(HasSubstr("\n"))));
}

INSTANTIATE_TEST_SUITE_P(, BadHeader, ::testing::ValuesIn(bad_files()));

/// One random edit: a byte changed, removed, inserted, a stretch copied, a number replaced, the end
/// cut.
void mutate(std::string& bytes, std::mt19937_64& random) {
  if (bytes.empty()) return;
  const auto below = [&](size_t n) { return static_cast<size_t>(random() % n); };
  const size_t at = below(bytes.size());
  switch (below(6)) {
    case 0:
      bytes[at] = static_cast<char>(random());
      break;
    case 1:
      bytes.erase(at, 1 + below(4));
      break;
    case 2:
      bytes.insert(at, 1, "{}[]\",:-09.e"[below(12)]);
      break;
    case 3:
      bytes.insert(below(bytes.size()), bytes.substr(at, 1 + below(40)));
      break;
    case 4: {
      const size_t digit = bytes.find_first_of("0123456789", at);
      static constexpr const char* kNumbers[] = {
          "0",   "-1",    "18446744073709551615", "4294967296",
          "1e9", "1e400", "9223372036854775807",  "3"};
      if (digit != std::string::npos) bytes.replace(digit, 1, kNumbers[below(8)]);
      break;
    }
    default:
      bytes.resize(at);
  }
}

TEST(SafetensorsHeader, SurvivesDamagedFiles) {
  const std::string whole =
      read_bytes(std::string(ANYSLOT_GOLDENS_DIR) + "/tiny/llama-plain/golden.safetensors");
  const std::string intact =
      file_of({R"("__metadata__":{"format":"pt"})", entry("a", "F32", "[2,3]", "[0,24]"),
               entry("b", "BF16", "[4]", "[24,32]"), entry("c", "I64", "[]", "[32,40]")},
              40);
  ASSERT_TRUE(parse(whole).ok());
  ASSERT_TRUE(parse(intact).ok());
  const uint64_t seed = std::random_device()();
  SCOPED_TRACE("seed " + std::to_string(seed));
  RecordProperty("seed", std::to_string(seed));
  std::mt19937_64 random(seed);
  int refused = 0;
  for (int i = 0; i < 20000; ++i) {
    std::string bytes = intact;
    const auto edits = 1 + random() % 4;
    for (uint64_t edit = 0; edit < edits; ++edit) mutate(bytes, random);
    const auto entries = parse(bytes);
    if (!entries.ok()) {
      ++refused;
      EXPECT_FALSE(entries.status().message().empty());
      continue;
    }
    for (const TensorEntry& tensor : *entries) {
      ASSERT_LE(tensor.begin, tensor.end);
      ASSERT_LE(tensor.end, bytes.size());
    }
  }
  std::printf("seed %llu: %d of 20000 damaged files refused\n",
              static_cast<unsigned long long>(seed), refused);
  EXPECT_GT(refused, 10000);
}

}  // namespace
}  // namespace anyslot
