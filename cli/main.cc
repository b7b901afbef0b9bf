#include <fcntl.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "command.h"
#include "output_file.h"
#include "table.h"

namespace anyslot::cli {
namespace {

constexpr int kWorkFailed = 1;
constexpr int kWrongCall = 2;

/// Prints one line whatever the message holds.
int report_error(std::string message, int exit_code) {
  message = one_line(std::move(message));
  message.erase(message.find_last_not_of(' ') + 1);
  // There is nobody left to tell when standard error is closed.
  (void)write_all(STDERR_FILENO, "anyslot: error: " + message + "\n", "standard error").ok();
  return exit_code;
}

int exit_code_of(const Status& status) {
  if (status.ok()) return 0;
  return status.code() == StatusCode::kInvalidArgument ? kWrongCall : kWorkFailed;
}

/// `app` is the program or the command of it that was being read, e.g. "anyslot bench serve".
std::string help_hint(const CLI::App& app) {
  std::string call = app.get_name();
  for (const CLI::App* parent = app.get_parent(); parent != nullptr;
       parent = parent->get_parent()) {
    call = parent->get_name() + " " + call;
  }
  return " (see " + call + " --help)";
}

/// The innermost command that was called.
const CLI::App& called_command(const CLI::App& app) {
  const std::vector<CLI::App*> called = app.get_subcommands();
  return called.empty() ? app : called_command(*called.front());
}

/// What is wrong with the first word behind `app` and the commands in it, or nothing. The library
/// would only say that a command is required.
std::string unknown_command(const CLI::App& app, int argc, char** argv) {
  std::string names;
  const std::string called = argc < 2 ? "" : argv[1];
  for (const CLI::App* command : app.get_subcommands({})) {
    if (called == command->get_name()) return unknown_command(*command, argc - 1, argv + 1);
    names += (names.empty() ? "" : ", ") + command->get_name();
  }
  if (names.empty()) return {};
  const bool is_option = called.starts_with('-');
  if (is_option && app.get_option_no_throw(called) != nullptr) return {};
  std::string start = "no command; ";
  if (is_option) {
    start = "unknown option \"" + called + "\"; begin with a command: ";
  } else if (!called.empty()) {
    start = "unknown command \"" + called + "\"; ";
  } else if (app.get_parent() == nullptr) {
    start += "start with `anyslot demo`, or ";
  }
  return start + "use one of " + names + help_hint(app);
}

/// A closed standard descriptor is taken by something that cannot be used the way it is meant, so
/// that no file of ours gets its number and reading or writing it is an error.
void occupy_closed_descriptors() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) >= 0) continue;
    [[maybe_unused]] const int opened =
        ::open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY);
  }
}

int run_program(int argc, char** argv) {
  occupy_closed_descriptors();
  Interrupt interrupt;
  std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an error of write()
  std::signal(SIGXFSZ, SIG_IGN);  // so is a file that grows past its limit

  CLI::App app(
      "AnySlot answers questions from documents. It caches one copy of a document's keys and "
      "values\n"
      "and reuses it in any slot of any prompt.");
  app.name("anyslot");
  app.set_version_flag("--version", "anyslot " ANYSLOT_VERSION);
  app.get_formatter()->column_width(34);
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 success, 1 the work failed, 2 the call was wrong.\n"
      "Start with `anyslot demo`; `anyslot COMMAND --help` lists a command's options.");
  Action action;
  add_run_command(app, action);
  add_ask_command(app, action);
  add_serve_command(app, action);
  add_logits_command(app, action);
  add_validate_command(app, action);
  add_demo_command(app, action);
  add_race_command(app, action);
  add_inspect_command(app, action);
  add_doctor_command(app, action);
  add_bench_command(app, action);
  if (const std::string wrong = unknown_command(app, argc, argv); !wrong.empty()) {
    return report_error(wrong, kWrongCall);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& success) {  // --help and --version
    std::ostringstream text;
    app.exit(success, text, text);
    const Status status = print(text.str());
    return status.ok() ? 0 : report_error(status.message(), kWorkFailed);
  } catch (const CLI::ParseError& error) {
    return report_error(error.what() + help_hint(called_command(app)), kWrongCall);
  }
  Status status = action(interrupt);
  const Status end = interrupt.finish();
  if (status.ok()) status = end;
  return status.ok() ? 0 : report_error(status.message(), exit_code_of(status));
}

}  // namespace
}  // namespace anyslot::cli

int main(int argc, char** argv) {
  try {
    return anyslot::cli::run_program(argc, argv);
  } catch (const std::bad_alloc&) {
    return anyslot::cli::report_error("out of memory", anyslot::cli::kWorkFailed);
  } catch (const std::exception& error) {
    return anyslot::cli::report_error(std::string("internal error: ") + error.what(),
                                      anyslot::cli::kWorkFailed);
  }
}
