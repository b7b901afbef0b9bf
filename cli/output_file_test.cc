#include "output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "support/temporary_folder.h"

namespace anyslot::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing_support::read_bytes;

class OutputFileTest : public testing::Test {
 protected:
  testing_support::TemporaryFolder folder_;
  Interrupt interrupt_;
};

TEST_F(OutputFileTest, AppearsWholeAtCommit) {
  folder_.write("out", "old");
  Expected<OutputFile> file = OutputFile::open(folder_.file("out"), interrupt_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  ASSERT_TRUE(file->write("new ").ok());
  ASSERT_TRUE(file->write("text").ok());
  EXPECT_EQ(read_bytes(folder_.file("out")), "old");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(read_bytes(folder_.file("out")), "new text");
  EXPECT_EQ(folder_.num_entries(), 1);
}

TEST_F(OutputFileTest, LeavesNothingWithoutCommit) {
  {
    Expected<OutputFile> file = OutputFile::open(folder_.file("out"), interrupt_);
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE(file->write("half").ok());
  }
  EXPECT_EQ(folder_.num_entries(), 0);
}

TEST_F(OutputFileTest, KeepsALink) {
  folder_.write("real", "old");
  fs::create_symlink("real", folder_.file("link"));
  Expected<OutputFile> file = OutputFile::open(folder_.file("link"), interrupt_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("new").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_symlink(folder_.file("link")));
  EXPECT_EQ(read_bytes(folder_.file("real")), "new");
}

TEST_F(OutputFileTest, MakesTheFileThatALinkMeans) {
  fs::create_symlink("not-yet", folder_.file("link"));
  Expected<OutputFile> file = OutputFile::open(folder_.file("link"), interrupt_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->write("new").ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_TRUE(fs::is_symlink(folder_.file("link")));
  EXPECT_EQ(read_bytes(folder_.file("not-yet")), "new");

  fs::create_symlink("loop", folder_.file("loop"));
  const Expected<OutputFile> loop = OutputFile::open(folder_.file("loop"), interrupt_);
  ASSERT_FALSE(loop.ok());
  EXPECT_THAT(loop.status().message(), HasSubstr("symbolic links"));
}

TEST_F(OutputFileTest, KeepsTheModeOfTheFileThatItReplaces) {
  folder_.write("out", "private");
  fs::permissions(folder_.file("out"), fs::perms::owner_read | fs::perms::owner_write);
  Expected<OutputFile> file = OutputFile::open(folder_.file("out"), interrupt_);
  ASSERT_TRUE(file.ok());
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(fs::status(folder_.file("out")).permissions(),
            fs::perms::owner_read | fs::perms::owner_write);
}

TEST_F(OutputFileTest, NamesAPlaceThatCannotBeWritten) {
  for (const std::string& place :
       {folder_.file("no/such/folder/out"), folder_.path(), std::string("/proc/out")}) {
    const Expected<OutputFile> file = OutputFile::open(place, interrupt_);
    ASSERT_FALSE(file.ok()) << place;
    EXPECT_EQ(file.status().code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(file.status().message(), HasSubstr("cannot write " + place));
  }
  EXPECT_EQ(folder_.num_entries(), 0);
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

TEST_F(OutputFileTest, KnowsStandardOutputByItsPath) {
  Expected<OutputFile> file = OutputFile::open("/dev/stdout", interrupt_);
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_TRUE(file->is_standard_output());
  EXPECT_TRUE(file->commit().ok());
  EXPECT_GE(::fcntl(STDOUT_FILENO, F_GETFD), 0) << "it stays open";
}

class InterruptTest : public OutputFileTest, public testing::WithParamInterface<int> {};
INSTANTIATE_TEST_SUITE_P(Signals, InterruptTest, testing::Values(SIGINT, SIGTERM, SIGHUP, SIGQUIT));

TEST_P(InterruptTest, RemovesTheTemporaryFileAndTellsTheSignal) {
  int ready[2];
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    ::close(STDERR_FILENO);
    std::signal(GetParam(), SIG_DFL);  // ignored in tests that run in the background
    Interrupt interrupt;
    Expected<OutputFile> file = OutputFile::open(folder_.file("out"), interrupt);
    const bool written = file.ok() && file->write("half").ok() && ::write(ready[1], "x", 1) == 1;
    if (!written) ::_exit(1);
    while (true) ::pause();
  }
  char byte = 0;
  ASSERT_EQ(::read(ready[0], &byte, 1), 1);
  EXPECT_EQ(folder_.num_entries(), 1) << "the temporary file";
  ASSERT_EQ(::kill(child, GetParam()), 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 128 + GetParam());
  EXPECT_EQ(folder_.num_entries(), 0);
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace anyslot::cli
