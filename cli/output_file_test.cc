#include "output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace anyslot::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class OutputFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "anyslot-output-XXXXXX";
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  size_t num_files() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(folder_), {}));
  }
  static std::string content(const std::string& file) {
    std::ostringstream text;
    text << std::ifstream(file).rdbuf();
    return text.str();
  }

  fs::path folder_;
  Interrupt interrupt_;
};

TEST_F(OutputFileTest, AppearsWholeAtCommit) {
  std::ofstream(path("out")) << "old";
  Expected<OutputFile> file = OutputFile::open(path("out"), interrupt_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write("new ").ok());
  ASSERT_TRUE(file->write("text").ok());
  EXPECT_EQ(content(path("out")), "old");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(content(path("out")), "new text");
  EXPECT_EQ(num_files(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    Expected<OutputFile> file = OutputFile::open(path("out"), interrupt_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("half").ok());
  }
  EXPECT_EQ(num_files(), 0);
}

TEST_F(OutputFileTest, KeepsALink) {
  std::ofstream(path("real")) << "old";
  fs::create_symlink("real", path("link"));
  Expected<OutputFile> file = OutputFile::open(path("link"), interrupt_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("new").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_symlink(path("link")));
  EXPECT_EQ(content(path("real")), "new");
}

TEST_F(OutputFileTest, NamesAPlaceThatCannotBeWritten) {
  for (const std::string& place :
       {path("no/such/folder/out"), folder_.string(), std::string("/proc/out")}) {
    const Expected<OutputFile> file = OutputFile::open(place, interrupt_);
    ASSERT_FALSE(file.ok()) << place;
    EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr("cannot write " + place));
  }
  EXPECT_EQ(num_files(), 0);
  EXPECT_FALSE(OutputFile::open("", interrupt_).ok());
}

TEST_F(OutputFileTest, TellsOfAFullDisk) {
  Expected<OutputFile> file = OutputFile::open("/dev/full", interrupt_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  const Status status = file->write("x");
  EXPECT_EQ(status.code(), StatusCode::kInternal);
  EXPECT_THAT(status.message(), HasSubstr("/dev/full: No space left on device"));
}

TEST_F(OutputFileTest, TellsOfAClosedPipe) {
  std::signal(SIGPIPE, SIG_IGN);
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  ::close(ends[0]);
  const Status status = write_all(ends[1], "x", "standard output");
  ::close(ends[1]);
  EXPECT_THAT(status.message(), HasSubstr("standard output: Broken pipe"));
}

TEST_F(OutputFileTest, WritesDevicesDirectly) {
  Expected<OutputFile> file = OutputFile::open("/dev/null", interrupt_);
  ASSERT_TRUE(file.ok());
  EXPECT_TRUE(file->write("x").ok());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
}

using InterruptTest = OutputFileTest;

TEST_F(InterruptTest, RemovesTheTemporaryFileAndExits130) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    Interrupt interrupt;
    Expected<OutputFile> file = OutputFile::open(path("out"), interrupt);
    const bool written = file.ok() && file->write("half").ok() && ::write(ready[1], "x", 1) == 1;
    if (!written) ::_exit(1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(num_files(), 1) << "the temporary file";
  ASSERT_EQ(::kill(child, SIGINT), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 130);
  EXPECT_EQ(num_files(), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace anyslot::cli
