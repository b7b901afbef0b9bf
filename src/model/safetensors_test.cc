#include "model/safetensors.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/test_files.h"

namespace anyslot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kTwoTensors[] = R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},)"
                               R"("b":{"dtype":"I32","shape":[1],"data_offsets":[24,28]}})";

/// A file with one F32 tensor whose data is `fill`.
std::string one_tensor(const std::string& name, const std::string& fill) {
  std::string header = "{\"";
  header += name + "\":{\"dtype\":\"F32\",\"shape\":[" + std::to_string(fill.size() / 4);
  header += "],\"data_offsets\":[0," + std::to_string(fill.size()) + "]}}";
  return safetensors_bytes(header, 0) + fill;
}

std::string padded(std::string header, size_t multiple, size_t rest) {
  while ((8 + header.size()) % multiple != rest) header += ' ';
  return header;
}

TEST(TensorStore, ReadsWhatAnotherProgramWrote) {
  const auto store = TensorStore::open_file(std::string(ANYSLOT_GOLDENS_DIR) +
                                            "/tiny/llama-plain/golden.safetensors");
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_THAT(store->names(), ::testing::ElementsAre("block_logits", "full_logits", "input_ids",
                                                     "segment_of_token"));
  const StoredTensor* ids = store->find("input_ids");
  ASSERT_NE(ids, nullptr);
  EXPECT_EQ(ids->dtype, "I32");
  EXPECT_EQ(ids->shape, (std::vector<int64_t>{72}));
  EXPECT_EQ(ids->bytes.size(), 288U);
  EXPECT_EQ(store->find("input"), nullptr);
}

TEST(TensorStore, ReadsShards) {
  auto store = TensorStore::open(ANYSLOT_MODEL_DIR);
  ASSERT_TRUE(store.ok()) << store.status().message();
  const int64_t shape[] = {4096, 384};
  const auto table = store->get("model.embed_tokens.weight", shape);
  ASSERT_TRUE(table.ok()) << table.status().message();
  EXPECT_EQ(table->dtype, DType::kBFloat16);
  EXPECT_EQ(table->rows, 4096);
  EXPECT_EQ(table->cols, 384);
  EXPECT_NE(store->find("model.layers.0.input_layernorm.weight")->file,
            store->find("model.layers.7.input_layernorm.weight")->file);
}

TEST(TensorStore, ChecksShapeAndDtypeWhenAsked) {
  const TemporaryFolder folder;
  folder.write("model.safetensors", safetensors_bytes(padded(kTwoTensors, 8, 0), 28));
  auto store = TensorStore::open(folder.path());
  ASSERT_TRUE(store.ok()) << store.status().message();
  const int64_t right[] = {2, 3};
  const int64_t wrong[] = {3, 2};
  const int64_t one[] = {1};
  EXPECT_TRUE(store->get("a", right).ok());
  EXPECT_THAT(store->get("a", wrong).status().message(),
              HasSubstr("model.safetensors: tensor \"a\" has shape [2, 3], where the model's "
                        "config needs [3, 2]"));
  EXPECT_THAT(store->get("b", one).status().message(),
              HasSubstr("tensor \"b\" has dtype \"I32\"; F32, BF16 and F16 can be loaded"));
  EXPECT_THAT(store->get("c", one).status().message(), HasSubstr("no tensor \"c\""));
}

TEST(TensorStore, AlignsMisalignedTensors) {
  const TemporaryFolder folder;
  const std::string header =
      padded(R"({"t":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4, 1);
  const float values[] = {1.5F, -2.0F};
  std::string bytes = safetensors_bytes(header, 0);
  bytes.append(reinterpret_cast<const char*>(values), sizeof values);
  folder.write("model.safetensors", bytes);
  auto store = TensorStore::open(folder.path());
  ASSERT_TRUE(store.ok()) << store.status().message();
  const int64_t shape[] = {2};
  const auto tensor = store->get("t", shape);
  ASSERT_TRUE(tensor.ok());
  ASSERT_EQ(reinterpret_cast<uintptr_t>(tensor->data) % 4, 0U);
  EXPECT_EQ(tensor->row_as<float>(0)[0], 1.5F);
  EXPECT_EQ(tensor->row_as<float>(0)[1], -2.0F);
  const TensorStore moved = std::move(*store);
  EXPECT_EQ(tensor->row_as<float>(0)[1], -2.0F);
}

TEST(TensorStore, NamesWhatIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(TensorStore::open(folder.path()).status().message(),
              AllOf(HasSubstr(folder.path()), HasSubstr("no model.safetensors")));
  EXPECT_EQ(TensorStore::open(folder.file("absent")).status().code(), StatusCode::kNotFound);

  const std::string index = "model.safetensors.index.json";
  folder.write(index, R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  folder.write("1.safetensors", one_tensor("a", "01234567"));
  Status status = TensorStore::open(folder.path()).status();
  EXPECT_EQ(status.code(), StatusCode::kNotFound);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("2.safetensors: missing shard"), HasSubstr("expects tensor \"b\"")));

  folder.write("2.safetensors", one_tensor("c", "0123"));
  status = TensorStore::open(folder.path()).status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("2.safetensors: incomplete shard"),
                                      HasSubstr("expects tensor \"b\" in it")));

  folder.write("2.safetensors", one_tensor("b", "01234567").erase(66));
  status = TensorStore::open(folder.path()).status();
  EXPECT_THAT(status.message(), AllOf(HasSubstr("2.safetensors: tensor \"b\""),
                                      HasSubstr("truncated"), Not(HasSubstr("\n"))));

  folder.write("2.safetensors", one_tensor("b", "0123"));
  const auto store = TensorStore::open(folder.path());
  ASSERT_TRUE(store.ok()) << store.status().message();
  EXPECT_THAT(store->names(), ::testing::ElementsAre("a", "b"));
}

TEST(TensorStore, RefusesBadIndexes) {
  const TemporaryFolder folder;
  const std::string index = "model.safetensors.index.json";
  const auto message = [&](const std::string& json) {
    folder.write(index, json);
    return TensorStore::open(folder.path()).status().message();
  };
  EXPECT_THAT(message("{\n\"weight_map\": {\n]"),
              HasSubstr("index.json: invalid JSON at line 3, column 1"));
  EXPECT_THAT(message("{}"), HasSubstr("no weight_map"));
  EXPECT_THAT(message(R"({"weight_map":{"a":3}})"),
              HasSubstr("\"a\": its shard is not a file name"));
  EXPECT_THAT(message(R"({"weight_map":{"a":"../x"}})"),
              HasSubstr("\"../x\" is not a file name in the model's folder"));
  EXPECT_THAT(message(R"({"weight_map":{"a":""}})"), HasSubstr("is not a file name"));
}

TEST(TensorStore, FingerprintFollowsTheWeightsNotTheShards) {
  const TemporaryFolder folder;
  const auto fingerprint = [&] {
    const auto store = TensorStore::open(folder.path());
    EXPECT_TRUE(store.ok()) << store.status().message();
    return store->fingerprint();
  };
  folder.write("model.safetensors.index.json",
               R"({"weight_map":{"a":"1.safetensors","b":"2.safetensors"}})");
  folder.write("1.safetensors", one_tensor("a", "01234567"));
  folder.write("2.safetensors", one_tensor("b", "abcd"));
  const Digest sharded = fingerprint();
  EXPECT_EQ(sharded, fingerprint());

  const std::string header = R"({"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
                             R"("a":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})";
  folder.write("model.safetensors", safetensors_bytes(header, 0) + "abcd01234567");
  EXPECT_EQ(sharded, fingerprint());
  folder.write("model.safetensors", safetensors_bytes(header, 0) + "abcd01234568");
  EXPECT_NE(sharded, fingerprint());
}

TEST(TensorStore, RefusesWhatIsNoFile) {
  const TemporaryFolder folder;
  EXPECT_THAT(TensorStore::open_file(folder.path()).status().message(),
              HasSubstr("not a regular file"));
  folder.write("empty", "");
  EXPECT_THAT(TensorStore::open_file(folder.file("empty")).status().message(),
              HasSubstr("0 bytes are too few"));
}

}  // namespace
}  // namespace anyslot
