#include "test_program.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <sstream>

extern char** environ;

namespace anyslot::cli {
namespace {

struct Pipe {
  std::array<int, 2> ends{-1, -1};
  Pipe() { EXPECT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0); }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(size_t end) {
    if (ends[end] >= 0) ::close(ends[end]);
    ends[end] = -1;
  }
};

/// An unnamed file with this text, to be read from its start.
FILE* file_with(const std::string& text) {
  FILE* file = std::tmpfile();
  EXPECT_NE(file, nullptr);
  EXPECT_EQ(std::fwrite(text.data(), 1, text.size(), file), text.size());
  std::rewind(file);
  return file;
}

/// Appends what has arrived; false at the end of the stream.
bool read_some(int fd, std::string& text) {
  char buffer[1 << 16];
  const ssize_t size = ::read(fd, buffer, sizeof buffer);
  if (size > 0) text.append(buffer, static_cast<size_t>(size));
  return size > 0;
}

void read_both(Pipe& out, Pipe& error, ProgramResult& result, const ProgramInput& input,
               pid_t pid) {
  std::array<pollfd, 2> open = {{{out.ends[0], POLLIN, 0}, {error.ends[0], POLLIN, 0}}};
  bool told = false;
  while (open[0].fd >= 0 || open[1].fd >= 0) {
    ASSERT_GT(::poll(open.data(), open.size(), -1), 0);
    if (open[0].revents != 0 && !read_some(open[0].fd, result.out)) open[0].fd = -1;
    if (open[1].revents != 0 && !read_some(open[1].fd, result.error)) open[1].fd = -1;
    if (!told && !result.out.empty() && input.on_output) {
      told = true;
      input.on_output(pid);
    }
  }
}

}  // namespace

std::vector<std::string> ProgramResult::error_lines() const {
  std::vector<std::string> lines;
  std::istringstream stream(error);
  for (std::string line; std::getline(stream, line);) {
    if (line.starts_with("anyslot: error: ")) lines.push_back(line);
  }
  return lines;
}

std::string ProgramResult::last_error_line() const {
  if (error.empty() || error.back() != '\n') return "";
  const std::string text = error.substr(0, error.size() - 1);
  return text.substr(text.rfind('\n') + 1);
}

ProgramResult run_program(const std::vector<std::string>& arguments, const ProgramInput& input) {
  std::vector<std::string> words = {"anyslot"};
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);

  Pipe out;
  Pipe error;
  FILE* standard_input = file_with(input.text);
  if (input.close_output) out.close_end(0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ::fileno(standard_input), STDIN_FILENO);
  if (input.close_input) posix_spawn_file_actions_addclose(&actions, STDIN_FILENO);
  if (input.output_path.empty()) {
    posix_spawn_file_actions_adddup2(&actions, out.ends[1], STDOUT_FILENO);
  } else {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, input.output_path.c_str(), O_WRONLY,
                                     0);
  }
  posix_spawn_file_actions_adddup2(&actions, error.ends[1], STDERR_FILENO);
  posix_spawnattr_t attributes;  // tests that run in the background have SIGINT ignored
  posix_spawnattr_init(&attributes);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  posix_spawnattr_setsigdefault(&attributes, &signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
  pid_t pid = -1;
  const int spawned =
      ::posix_spawn(&pid, ANYSLOT_PROGRAM, &actions, &attributes, argv.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  std::fclose(standard_input);
  ProgramResult result;
  EXPECT_EQ(spawned, 0) << ANYSLOT_PROGRAM;
  if (spawned != 0) return result;

  out.close_end(1);
  error.close_end(1);
  read_both(out, error, result, input, pid);
  int status = 0;
  EXPECT_EQ(::waitpid(pid, &status, 0), pid);
  result.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return result;
}

}  // namespace anyslot::cli
