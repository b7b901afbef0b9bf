#include "model/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "model/test_files.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

TEST(SafetensorsHeader, MakesAFileThatIsReadBack) {
  const TemporaryFolder folder;
  const std::vector<float> logits = {1.0F, -2.5F, 3.0F, 0.0F, 5.0F, 6.0F};
  const std::vector<float> other = {7.0F};
  const NamedTensor tensors[] = {
      {"logits", {3, 2}, logits}, {"a", {}, other}, {"none", {0, 4}, {}}};
  const Expected<std::string> header = safetensors_header(tensors);
  ASSERT_TRUE(header.ok()) << header.status().message();
  const std::string path =
      folder.write("out.safetensors", *header + bytes_of(logits) + bytes_of(other));
  auto store = TensorStore::open_file(path);
  ASSERT_TRUE(store.ok()) << store.status().message();
  const int64_t shape[] = {3, 2};
  const auto view = store->get("logits", shape);
  ASSERT_TRUE(view.ok()) << view.status().message();
  EXPECT_EQ(std::vector<float>(view->row_as<float>(0), view->row_as<float>(0) + 6), logits);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 4, 0U);
  const auto scalar = store->get("a", {});
  ASSERT_TRUE(scalar.ok()) << scalar.status().message();
  EXPECT_EQ(*scalar->row_as<float>(0), 7.0F);
}

TEST(SafetensorsHeader, RefusesWhatCannotBeRead) {
  const std::vector<float> values = {1.0F, 2.0F};
  const auto message = [](std::span<const NamedTensor> tensors) {
    const Expected<std::string> header = safetensors_header(tensors);
    EXPECT_EQ(header.status().code(), StatusCode::kInvalidArgument);
    return header.status().message();
  };
  const NamedTensor bad_shape[] = {{"t", {3}, values}};
  EXPECT_THAT(message(bad_shape), HasSubstr("tensor \"t\": shape [3] does not fit its 2 values"));
  const NamedTensor negative[] = {{"t", {-1, -2}, values}};
  EXPECT_THAT(message(negative), HasSubstr("shape [-1, -2] is not possible"));
  const NamedTensor twice[] = {{"t", {2}, values}, {"t", {2}, values}};
  EXPECT_THAT(message(twice), HasSubstr("stands twice"));
  const NamedTensor reserved[] = {{"__metadata__", {2}, values}};
  EXPECT_THAT(message(reserved), HasSubstr("the name is reserved"));
  const NamedTensor bad_name[] = {{"\xff", {2}, values}};
  EXPECT_THAT(message(bad_name), HasSubstr("not valid UTF-8"));
}

}  // namespace
}  // namespace anyslot
