#pragma once

#include <CLI/CLI.hpp>

#include "serve.h"

namespace anyslot::bench {

/// Adds the options that say what is asked: --dataset-name and those that follow from it.
/// `options` must outlive the command.
void add_workload_options(CLI::App& command, WorkloadOptions& options);

/// Adds the options that say when and how requests are sent: --num-prompts, --request-rate and so
/// on.
void add_load_options(CLI::App& command, ServeOptions& options);

/// Parses "ttft:200", "tpot:50" or "e2el:1000", in ms. Fails with kInvalidArgument.
Status add_goodput_target(const std::string& text, GoodputTargets& targets);

/// A number above 0, or "inf". Fails with kInvalidArgument.
Expected<double> parse_rate(const std::string& text);

}  // namespace anyslot::bench
