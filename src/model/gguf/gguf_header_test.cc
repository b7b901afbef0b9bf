#include "model/gguf/gguf_header.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <span>
#include <string>

#include "model/gguf/test_gguf.h"

namespace anyslot {
namespace {

using namespace testing_gguf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Expected<GgufHeader> parse(const std::string& bytes) {
  return parse_gguf_header("f.gguf", std::as_bytes(std::span(bytes)));
}

/// A file with a bit of everything.
GgufWriter sample() {
  GgufWriter file;
  file.add_text("general.architecture", "llama");
  file.add("u8", GgufValueType::kUint8, uint8_t{200});
  file.add("i8", GgufValueType::kInt8, int8_t{-3});
  file.add("u16", GgufValueType::kUint16, uint16_t{60000});
  file.add("i16", GgufValueType::kInt16, int16_t{-30000});
  file.add_u32("u32", 4000000000U);
  file.add("i32", GgufValueType::kInt32, int32_t{-5});
  file.add("u64", GgufValueType::kUint64, uint64_t{1} << 40);
  file.add("i64", GgufValueType::kInt64, -(int64_t{1} << 40));
  file.add("huge", GgufValueType::kUint64, std::numeric_limits<uint64_t>::max());
  file.add_f32("f32", 0.5);
  file.add("f64", GgufValueType::kFloat64, 0.1);
  file.add_bool("yes", true);
  file.add_texts("texts", {"a", "", "c\n"});
  file.add_i32s("numbers", {7, -8});
  file.add_list("nothing", GgufValueType::kString, 0, "");
  file.add_tensor("matrix", {2, 32}, kQ8_0, std::string(68, 'q'));
  file.add_tensor("vector", {3}, kF32, std::string(12, 'f'));
  return file;
}

TEST(GgufHeader, ReadsWhatIsThere) {
  const std::string bytes = sample().bytes();
  const auto header = parse(bytes);
  ASSERT_TRUE(header.ok()) << header.status().message();
  const auto& metadata = header->metadata;
  ASSERT_EQ(metadata.size(), 16U);
  EXPECT_EQ(std::get<std::string_view>(metadata.at("general.architecture")), "llama");
  EXPECT_EQ(std::get<int64_t>(metadata.at("u8")), 200);
  EXPECT_EQ(std::get<int64_t>(metadata.at("i8")), -3);
  EXPECT_EQ(std::get<int64_t>(metadata.at("u16")), 60000);
  EXPECT_EQ(std::get<int64_t>(metadata.at("i16")), -30000);
  EXPECT_EQ(std::get<int64_t>(metadata.at("u32")), 4000000000);
  EXPECT_EQ(std::get<int64_t>(metadata.at("i32")), -5);
  EXPECT_EQ(std::get<int64_t>(metadata.at("u64")), int64_t{1} << 40);
  EXPECT_EQ(std::get<int64_t>(metadata.at("i64")), -(int64_t{1} << 40));
  EXPECT_EQ(std::get<double>(metadata.at("huge")), 0x1p64);
  EXPECT_EQ(std::get<double>(metadata.at("f32")), 0.5);
  EXPECT_EQ(std::get<double>(metadata.at("f64")), 0.1);
  EXPECT_TRUE(std::get<bool>(metadata.at("yes")));
  EXPECT_THAT(std::get<GgufArray>(metadata.at("texts")).strings,
              testing::ElementsAre("a", "", "c\n"));
  const auto& numbers = std::get<GgufArray>(metadata.at("numbers"));
  ASSERT_EQ(numbers.count, 2U);
  EXPECT_EQ(std::get<int64_t>(numbers.number(0)), 7);
  EXPECT_EQ(std::get<int64_t>(numbers.number(1)), -8);
  EXPECT_EQ(std::get<GgufArray>(metadata.at("nothing")).count, 0U);

  ASSERT_EQ(header->tensors.size(), 2U);
  const GgufTensor& matrix = header->tensors.at("matrix");
  EXPECT_THAT(matrix.shape, testing::ElementsAre(2, 32));
  EXPECT_STREQ(matrix.type->name, "Q8_0");
  EXPECT_EQ(matrix.begin % 32, 0U);
  EXPECT_EQ(bytes.substr(matrix.begin, matrix.end - matrix.begin), std::string(68, 'q'));
  const GgufTensor& vector = header->tensors.at("vector");
  EXPECT_EQ(bytes.substr(vector.begin, vector.end - vector.begin), std::string(12, 'f'));
}

TEST(GgufHeader, TakesOtherAlignments) {
  GgufWriter file = sample();
  file.tensors.clear();
  file.alignment = 8;
  file.add_u32("general.alignment", 8);
  file.add_tensor("a", {1}, kF32, "abcd");
  file.add_tensor("b", {1}, kF32, "efgh");
  const std::string bytes = file.bytes();
  const auto header = parse(bytes);
  ASSERT_TRUE(header.ok()) << header.status().message();
  const GgufTensor& b = header->tensors.at("b");
  EXPECT_EQ(bytes.substr(b.begin, 4), "efgh");
  EXPECT_EQ(b.begin, header->tensors.at("a").begin + 8);
}

TEST(GgufHeader, EveryTruncationIsSeen) {
  const std::string bytes = sample().bytes();
  for (size_t size = 0; size < bytes.size(); ++size) {
    const auto header = parse(bytes.substr(0, size));
    ASSERT_FALSE(header.ok()) << size << " of " << bytes.size() << " bytes";
    EXPECT_EQ(header.status().code(), StatusCode::kFailedPrecondition);
    EXPECT_THAT(header.status().message(), StartsWith("f.gguf: ")) << size;
    EXPECT_EQ(header.status().message().find('\n'), std::string::npos) << size;
  }
}

/// Any byte may be damaged: the reader must say so or give tensors inside the file.
TEST(GgufHeader, DamagedBytesNeverLeadOutside) {
  const std::string whole = sample().bytes();
  const size_t header_bytes = sample().header().size();
  for (size_t at = 0; at < header_bytes; ++at) {
    for (const int change : {0x01, 0x80, 0xFF}) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ change);
      const auto header = parse(bytes);
      if (!header.ok()) continue;
      for (const auto& [name, tensor] : header->tensors) {
        EXPECT_LE(tensor.begin, tensor.end);
        EXPECT_LE(tensor.end, bytes.size());
      }
    }
  }
}

struct Damage {
  const char* name;
  void (*apply)(GgufWriter& file);
  const char* message;
};

const Damage kDamages[] = {
    {"Magic", [](GgufWriter& f) { f.magic = "GGML"; }, "no GGUF file"},
    {"Version2", [](GgufWriter& f) { f.version = 2; }, "GGUF version 2; version 3 is needed"},
    {"Version4", [](GgufWriter& f) { f.version = 4; }, "GGUF version 4"},
    {"BigEndian", [](GgufWriter& f) { f.version = 0x03000000; }, "is big-endian"},
    {"KeyTwice", [](GgufWriter& f) { f.add_u32("u32", 1); }, "metadata \"u32\" stands twice"},
    {"NoKey", [](GgufWriter& f) { f.add_u32("", 1); }, "has no key"},
    {"LongKey", [](GgufWriter& f) { f.add_u32(std::string(65536, 'k'), 1); }, "has 65536 bytes"},
    {"ValueType", [](GgufWriter& f) { f.metadata[0].second[0] = 13; },
     "metadata \"general.architecture\" has the unknown type 13"},
    {"ElementType", [](GgufWriter& f) { f.add_list("list", GgufValueType{77}, 1, "x"); },
     "metadata \"list\" has the unknown type 77"},
    {"ListOfLists", [](GgufWriter& f) { f.add_list("list", GgufValueType::kArray, 1, "x"); },
     "metadata \"list\" is a list of lists"},
    {"HugeCount",
     [](GgufWriter& f) { f.add_list("list", GgufValueType::kString, uint64_t{1} << 60, ""); },
     "metadata \"list\" has 1152921504606846976 elements"},
    {"HugeList", [](GgufWriter& f) { f.add_list("list", GgufValueType::kUint64, 300, ""); },
     "metadata \"list\" does not fit"},
    {"HugeString",
     [](GgufWriter& f) {
       f.metadata.emplace_back("text", raw(uint32_t{8}) + raw(~uint64_t{0}) + "abc");
     },
     "metadata \"text\" does not fit"},
    {"Bool", [](GgufWriter& f) { f.add("maybe", GgufValueType::kBool, uint8_t{2}); },
     "metadata \"maybe\" holds a truth value"},
    {"BoolInList", [](GgufWriter& f) { f.add_list("list", GgufValueType::kBool, 2, "\1\2"); },
     "metadata \"list\" holds a truth value"},
    {"AlignmentNotEight", [](GgufWriter& f) { f.add_u32("general.alignment", 12); },
     "\"general.alignment\" must be a multiple of 8"},
    {"AlignmentZero", [](GgufWriter& f) { f.add_u32("general.alignment", 0); },
     "\"general.alignment\" must be"},
    {"AlignmentText", [](GgufWriter& f) { f.add_text("general.alignment", "32"); },
     "\"general.alignment\" must be"},
    {"TensorTwice", [](GgufWriter& f) { f.add_tensor("vector", {1}, kF32, "abcd"); },
     "tensor \"vector\" stands twice"},
    {"NoDimensions", [](GgufWriter& f) { f.tensors[0].dimensions.clear(); },
     "tensor \"matrix\" has 0 dimensions"},
    {"FiveDimensions",
     [](GgufWriter& f) {
       f.tensors[0].dimensions = {32, 1, 1, 1, 2};
     },
     "tensor \"matrix\" has 5 dimensions"},
    {"DimensionZero",
     [](GgufWriter& f) {
       f.tensors[0].dimensions = {32, 0};
     },
     "tensor \"matrix\" has a dimension of 0"},
    {"DimensionNegative",
     [](GgufWriter& f) {
       f.tensors[0].dimensions = {~uint64_t{0}, 2};
     },
     "tensor \"matrix\" has a dimension of 18446744073709551615"},
    {"Overflow",
     [](GgufWriter& f) {
       f.tensors[1].dimensions = {uint64_t{1} << 40, uint64_t{1} << 40};
     },
     "tensor \"vector\": its shape is impossible for type F32"},
    {"HalfABlock",
     [](GgufWriter& f) {
       f.tensors[0].dimensions = {16, 4};
     },
     "tensor \"matrix\": its shape is impossible for type Q8_0"},
    {"LargerBlock", [](GgufWriter& f) { f.tensors[0].type = 23; },
     "tensor \"matrix\": its shape is impossible for type IQ4_XS"},
    {"UnknownType", [](GgufWriter& f) { f.tensors[0].type = 999; },
     "tensor \"matrix\" is of type number 999, which is not known here; take a file"},
    {"Misaligned", [](GgufWriter& f) { f.tensors[1].offset += 4; },
     "tensor \"vector\": its offset 100 is no multiple of 32"},
    {"Overlap", [](GgufWriter& f) { f.tensors[1].offset = 64; },
     "tensor \"vector\": its data overlap those of another tensor"},
    {"OffsetOverflow",
     [](GgufWriter& f) {
       f.tensors[1].offset = ~uint64_t{31};
       f.tensors[1].dimensions = {16};
       f.tensors[1].data.clear();
     },
     "tensor \"vector\": its offset 18446744073709551584 is too large"},
};

TEST(GgufHeader, NamesWhatIsWrong) {
  for (const Damage& damage : kDamages) {
    SCOPED_TRACE(damage.name);
    GgufWriter file = sample();
    damage.apply(file);
    const bool far = std::string(damage.name) == "OffsetOverflow";  // such a file cannot be written
    const auto header = parse(far ? file.header() : file.bytes());
    ASSERT_FALSE(header.ok());
    EXPECT_THAT(header.status().message(), HasSubstr(damage.message));
    EXPECT_EQ(header.status().code(), StatusCode::kFailedPrecondition);
  }
}

TEST(GgufHeader, CountsThatTheFileCannotHold) {
  const std::string bytes = sample().bytes();
  const struct {
    size_t at;
    const char* message;
  } counts[] = {{8, "tensor"}, {16, "metadata"}};
  for (const auto& count : counts) {
    std::string damaged = bytes;
    damaged.replace(count.at, 8, raw(std::numeric_limits<uint64_t>::max()));
    EXPECT_THAT(parse(damaged).status().message(), HasSubstr(count.message));
  }
}

}  // namespace
}  // namespace anyslot
