#include "model/safetensors_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "model/safetensors.h"
#include "model/test_files.h"

namespace anyslot {
namespace {

using ::testing::HasSubstr;

int files_in(const std::string& folder) {
  int count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(folder)) ++count;
  return count;
}

TEST(WriteSafetensors, IsReadBack) {
  const TemporaryFolder folder;
  const std::vector<float> logits = {1.0F, -2.5F, 3.0F, 0.0F, 5.0F, 6.0F};
  const std::vector<float> other = {7.0F};
  const NamedTensor tensors[] = {
      {"logits", {3, 2}, logits}, {"a", {}, other}, {"none", {0, 4}, {}}};
  const std::string path = folder.file("out.safetensors");
  for (int time = 0; time < 2; ++time) {  // the second time it replaces a file
    const Status status = write_safetensors(path, tensors);
    ASSERT_TRUE(status.ok()) << status.message();
  }
  auto store = TensorStore::open_file(path);
  ASSERT_TRUE(store.ok()) << store.status().message();
  const int64_t shape[] = {3, 2};
  const auto view = store->get("logits", shape);
  ASSERT_TRUE(view.ok());
  EXPECT_EQ(std::vector<float>(view->row_as<float>(0), view->row_as<float>(0) + 6), logits);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(view->data) % 4, 0U);
  EXPECT_EQ(files_in(folder.path()), 1);
}

TEST(WriteSafetensors, KeepsSymbolicLinks) {
  const TemporaryFolder folder;
  folder.write("target", "old");
  std::filesystem::create_symlink("target", folder.file("link"));
  const std::vector<float> values = {7.0F};
  const NamedTensor tensors[] = {{"t", {1}, values}};
  ASSERT_TRUE(write_safetensors(folder.file("link"), tensors).ok());
  EXPECT_TRUE(std::filesystem::is_symlink(folder.file("link")));
  EXPECT_TRUE(TensorStore::open_file(folder.file("target")).ok());
}

TEST(WriteSafetensors, LeavesNothingBehindWhenItFails) {
  const TemporaryFolder folder;
  const std::vector<float> values = {1.0F, 2.0F};
  const NamedTensor good[] = {{"t", {2}, values}};
  Status status = write_safetensors(folder.file("absent/out"), good);
  EXPECT_EQ(status.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), HasSubstr("absent/out: cannot be written: No such file"));
  EXPECT_THAT(write_safetensors(folder.path(), good).message(), HasSubstr("not a regular file"));
  EXPECT_THAT(write_safetensors("/dev/full", good).message(), HasSubstr("not a regular file"));

  const std::string path = folder.write("kept", "old");
  const NamedTensor bad_shape[] = {{"t", {3}, values}};
  EXPECT_THAT(write_safetensors(path, bad_shape).message(),
              HasSubstr("tensor \"t\": shape [3] does not fit its 2 values"));
  const NamedTensor twice[] = {{"t", {2}, values}, {"t", {2}, values}};
  EXPECT_THAT(write_safetensors(path, twice).message(), HasSubstr("stands twice"));
  const NamedTensor bad_name[] = {{"\xff", {2}, values}};
  EXPECT_THAT(write_safetensors(path, bad_name).message(), HasSubstr("not valid UTF-8"));
  EXPECT_EQ(read_bytes(path), "old");
  EXPECT_EQ(files_in(folder.path()), 1);
}

}  // namespace
}  // namespace anyslot
