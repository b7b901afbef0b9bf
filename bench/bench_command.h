#pragma once

#include <CLI/CLI.hpp>
#include <memory>

#include "cli/command.h"

namespace anyslot::bench {

/// Each adds one subcommand of `anyslot bench`; when it is the one that was called, parsing sets
/// `action`.
void add_model_benchmark(CLI::App& bench, cli::Action& action);
void add_linear_benchmark(CLI::App& bench, cli::Action& action);
void add_attention_benchmark(CLI::App& bench, cli::Action& action);
void add_serve_benchmark(CLI::App& bench, cli::Action& action);  // in bench/serve
void add_sweep_benchmark(CLI::App& bench, cli::Action& action);  // in bench/sweep

/// When `command` is called, `action` becomes run(*options, interrupt).
template <typename Options, typename Run>
void set_action(CLI::App& command, const std::shared_ptr<Options>& options, Run run,
                cli::Action& action) {
  command.callback([options, run, &action] {
    action = [options, run](cli::Interrupt& interrupt) { return run(*options, interrupt); };
  });
}

}  // namespace anyslot::bench
