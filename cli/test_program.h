#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

namespace anyslot::cli {

/// What a finished run of the program left.
struct ProgramResult {
  int exit_code = -1;  // 128 + signal when a signal ended it
  std::string out;
  std::string error;

  /// The lines of standard error that begin with "anyslot: error: ".
  std::vector<std::string> error_lines() const;
  std::string last_error_line() const;
};

struct ProgramInput {
  std::string text = {};         // standard input
  bool close_input = false;      // standard input is closed, as by <&-
  std::string output_path = {};  // where standard output goes; empty: into the result
  bool close_output = false;     // the reader of standard output is gone from the start
  /// Called once when the first byte of standard output arrives, with the process id.
  std::function<void(pid_t)> on_output = {};
};

/// Runs the program that was built and waits for its end.
ProgramResult run_program(const std::vector<std::string>& arguments,
                          const ProgramInput& input = {});

}  // namespace anyslot::cli
