#include "options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>

#include "backend/cpu/machine_rates.h"
#include "base/compute_type.h"
#include "base/cpu_count.h"
#include "cli/options.h"

namespace anyslot::bench {

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  while (true) {
    const size_t comma = text.find(',');
    parts.emplace_back(text.substr(0, comma));
    if (comma == std::string_view::npos) return parts;
    text.remove_prefix(comma + 1);
  }
}

Expected<std::vector<int64_t>> parse_numbers(std::string_view text, int64_t minimum) {
  constexpr int64_t kMaximum = std::numeric_limits<int32_t>::max();
  return parse_each<int64_t>(text, [&](const std::string& part) -> Expected<int64_t> {
    int64_t number = 0;
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), number);
    if (error == std::errc() && end == part.data() + part.size() && number >= minimum &&
        number <= kMaximum) {
      return number;
    }
    return invalid_argument(
        fmt::format("\"{}\" is not a list of whole numbers from {} to {} with commas between them",
                    text, minimum, kMaximum));
  });
}

Expected<std::vector<std::string>> parse_instruction_sets(std::string_view text) {
  const std::vector<std::string> usable = cpu::usable_instruction_sets();
  if (text == "all") return usable;
  return parse_each<std::string>(text, [&](const std::string& part) -> Expected<std::string> {
    if (std::ranges::find(usable, part) != usable.end()) return part;
    return invalid_argument(fmt::format("\"{}\" is not one that this machine can run: {}, or all",
                                        part, fmt::join(usable, ", ")));
  });
}

CLI::Option* add_numbers_option(CLI::App& command, const std::string& name,
                                std::vector<int64_t>& values, int64_t minimum,
                                const std::string& help) {
  return add_list_option(
             command, name, values, fmt::format("{} (default: {})", help, fmt::join(values, ",")),
             [minimum](const std::string& text) { return parse_numbers(text, minimum); })
      ->type_name("N,...");
}

DType ShapeOptions::dtype() const { return dtype_of(type); }

int ShapeOptions::threads_or_default() const {
  return num_threads == 0 ? default_num_threads() : num_threads;
}

void add_shape_options(CLI::App& command, ShapeOptions& shape) {
  command
      .add_option("--shape", shape.config,
                  "a model's config.json, which tells the sizes; bench/shapes has some")
      ->type_name("FILE")
      ->required()
      ->check(cli::existing_file());
  command
      .add_option_function<std::string>(
          "--dtype",
          [&shape](const std::string& text) {
            const Expected<ComputeType> type = parse_compute_type(text);
            if (!type) throw CLI::ValidationError("--dtype", type.status().message());
            shape.type = *type;
          },
          "type of weights, activations and KV: bfloat16 or float32 (default: bfloat16)")
      ->type_name("D");
  command
      .add_option("--threads", shape.num_threads,
                  "CPU threads (default: one per physical core, within the CPU quota)")
      ->type_name("N")
      ->check(cli::at_least(1));
}

void add_run_limit_options(CLI::App& command, RunLimits& limits) {
  command
      .add_option("--runs", limits.runs,
                  fmt::format("measurements of each case, at least (default: {})", limits.runs))
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      .add_option("--seconds", limits.seconds,
                  fmt::format("measured time of each case, at least (default: {})", limits.seconds))
      ->type_name("S")
      ->check(cli::number_where([](double x) { return x >= 0; }, "of at least 0"));
}

}  // namespace anyslot::bench
