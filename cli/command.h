#pragma once

#include <CLI/CLI.hpp>
#include <functional>

#include "anyslot/status.h"
#include "interrupt.h"

namespace anyslot::cli {

/// What a command does once its options are parsed.
using Action = std::function<Status(Interrupt&)>;

/// Each adds one subcommand; when it is the one that was called, parsing sets `action`.
void add_run_command(CLI::App& app, Action& action);
void add_ask_command(CLI::App& app, Action& action);
void add_logits_command(CLI::App& app, Action& action);
void add_validate_command(CLI::App& app, Action& action);
void add_demo_command(CLI::App& app, Action& action);
void add_serve_command(CLI::App& app, Action& action);
void add_inspect_command(CLI::App& app, Action& action);
void add_doctor_command(CLI::App& app, Action& action);
void add_race_command(CLI::App& app, Action& action);   // in bench/race
void add_bench_command(CLI::App& app, Action& action);  // in bench/

}  // namespace anyslot::cli
