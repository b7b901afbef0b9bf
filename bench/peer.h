#pragma once

#include <sys/types.h>

#include <memory>
#include <string>

#include "anyslot/status.h"
#include "model_bench.h"

namespace anyslot::bench {

/// Another program that runs the same tests, in turns with the engine. It reads a line for each,
/// {"prompt_tokens": P, "generated_tokens": G, "depth": D}, and answers with a line,
/// {"tokens_per_second": R} or {"error": "why not"}. A moment after its answer its threads must be
/// asleep.
class Peer {
 public:
  /// Runs `command` in a shell; its standard error stays the caller's.
  static Expected<std::unique_ptr<Peer>> start(const std::string& command);
  /// Closes the program's input and waits for its end.
  ~Peer();
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  /// The program's rate, in tokens per second. Fails with what it says, or when it ended or
  /// answered anything else.
  Expected<double> run(const ModelTest& test);

 private:
  Peer(pid_t process, int input, int output) : process_(process), input_(input), output_(output) {}
  Expected<std::string> read_line();

  pid_t process_;
  int input_;
  int output_;
  std::string read_;
};

}  // namespace anyslot::bench
