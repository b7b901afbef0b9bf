#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"
#include "base/dtype.h"
#include "timing.h"

namespace anyslot::bench {

/// The parts of "a,b"; empty ones are kept.
std::vector<std::string> split_list(std::string_view text);

/// Parses each part of a list on its own.
template <typename Value, typename Parse>
Expected<std::vector<Value>> parse_each(std::string_view text, Parse parse) {
  std::vector<Value> values;
  for (const std::string& part : split_list(text)) {
    Expected<Value> value = parse(part);
    if (!value) return value.status();
    values.push_back(*std::move(value));
  }
  return values;
}

/// "64,512,2048": whole numbers from `minimum` to 2^31 - 1. Fails with kInvalidArgument.
Expected<std::vector<int64_t>> parse_numbers(std::string_view text, int64_t minimum);

/// Names of instruction sets that this machine can run, or "all" of them, the slowest first. Fails
/// with kInvalidArgument.
Expected<std::vector<std::string>> parse_instruction_sets(std::string_view text);

/// Adds an option whose text `parse` turns into a list, which `values` then holds.
template <typename Value, typename Parse>
CLI::Option* add_list_option(CLI::App& command, const std::string& name, std::vector<Value>& values,
                             const std::string& help, Parse parse) {
  return command.add_option_function<std::string>(
      name,
      [name, parse, &values](const std::string& text) {
        Expected<std::vector<Value>> parsed = parse(text);
        if (!parsed) throw CLI::ValidationError(name, parsed.status().message());
        values = *std::move(parsed);
      },
      help);
}

/// Adds an option that takes a list as parse_numbers does; the content of `values` is the default.
CLI::Option* add_numbers_option(CLI::App& command, const std::string& name,
                                std::vector<int64_t>& values, int64_t minimum,
                                const std::string& help);

/// What operator benchmarks run on.
struct ShapeOptions {
  std::string config;  // a config.json
  ComputeType type = ComputeType::kBFloat16;
  int num_threads = 0;  // 0: default_num_threads()

  DType dtype() const;
  int threads_or_default() const;
};

/// Adds --shape FILE, required, --dtype and --threads.
void add_shape_options(CLI::App& command, ShapeOptions& shape);

/// Adds --runs and --seconds.
void add_run_limit_options(CLI::App& command, RunLimits& limits);

}  // namespace anyslot::bench
