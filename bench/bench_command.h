#pragma once

#include <CLI/CLI.hpp>

#include "cli/command.h"

namespace anyslot::bench {

/// Each adds one subcommand of `anyslot bench`; when it is the one that was called, parsing sets
/// `action`.
void add_model_benchmark(CLI::App& bench, cli::Action& action);
void add_linear_benchmark(CLI::App& bench, cli::Action& action);
void add_attention_benchmark(CLI::App& bench, cli::Action& action);
void add_serve_benchmark(CLI::App& bench, cli::Action& action);  // in bench/serve
void add_sweep_benchmark(CLI::App& bench, cli::Action& action);  // in bench/sweep

}  // namespace anyslot::bench
