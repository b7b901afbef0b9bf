#include "peer.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <nlohmann/json.hpp>
#include <thread>

extern char** environ;

namespace anyslot::bench {

namespace {

using nlohmann::json;

/// Time for the peer's threads to fall asleep: many engines' wait busily for a while, and the test
/// that comes next must not share its cores with them.
constexpr std::chrono::milliseconds kBusyWait{300};

struct Pipe {
  int read_end = -1;
  int write_end = -1;
};

/// Both ends close when a program is started; posix_spawn copies the ones it hands on.
Expected<Pipe> open_pipe() {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) {
    return internal_error(fmt::format("no pipe: {}", std::strerror(errno)));
  }
  return Pipe{ends[0], ends[1]};
}

}  // namespace

Expected<std::unique_ptr<Peer>> Peer::start(const std::string& command) {
  const Expected<Pipe> input = open_pipe();
  if (!input) return input.status();
  const Expected<Pipe> output = open_pipe();
  if (!output) return output.status();
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, input->read_end, STDIN_FILENO);
  posix_spawn_file_actions_adddup2(&actions, output->write_end, STDOUT_FILENO);
  std::string shell = "sh";
  std::string option = "-c";
  std::string text = command;
  char* const arguments[] = {shell.data(), option.data(), text.data(), nullptr};
  pid_t process = -1;
  const int error = posix_spawn(&process, "/bin/sh", &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  ::close(input->read_end);
  ::close(output->write_end);
  if (error != 0) {
    ::close(input->write_end);
    ::close(output->read_end);
    return internal_error(
        fmt::format("the peer \"{}\" cannot be started: {}", command, std::strerror(error)));
  }
  return std::unique_ptr<Peer>(new Peer(process, input->write_end, output->read_end));
}

Peer::~Peer() {
  ::close(input_);
  ::close(output_);
  while (::waitpid(process_, nullptr, 0) < 0 && errno == EINTR) {
  }
}

Expected<std::string> Peer::read_line() {
  for (;;) {
    if (const size_t end = read_.find('\n'); end != std::string::npos) {
      std::string line = read_.substr(0, end);
      read_.erase(0, end + 1);
      return line;
    }
    char buffer[4096];
    const ssize_t count = ::read(output_, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return internal_error("the peer ended without an answer");
    read_.append(buffer, static_cast<size_t>(count));
  }
}

Expected<double> Peer::run(const ModelTest& test) {
  const std::string line = json{{"prompt_tokens", test.prompt_tokens},
                                {"generated_tokens", test.generated_tokens},
                                {"depth", test.depth}}
                               .dump() +
                           "\n";
  if (::write(input_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    return internal_error("the peer takes no more tests: it has ended");
  }
  const Expected<std::string> answer = read_line();
  if (!answer) return answer.status();
  std::this_thread::sleep_for(kBusyWait);
  const json parsed = json::parse(*answer, nullptr, false);
  if (parsed.is_object() && parsed.contains("error") && parsed["error"].is_string()) {
    return internal_error(
        fmt::format("the peer on {}: {}", test.name(), parsed["error"].get<std::string>()));
  }
  if (parsed.is_object() && parsed.contains("tokens_per_second") &&
      parsed["tokens_per_second"].is_number() && parsed["tokens_per_second"].get<double>() > 0) {
    return parsed["tokens_per_second"].get<double>();
  }
  return internal_error(fmt::format("the peer on {}: no rate in its answer, \"{}\"", test.name(),
                                    answer->substr(0, 200)));
}

}  // namespace anyslot::bench
