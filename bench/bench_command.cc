#include "bench_command.h"

namespace anyslot::cli {

void add_bench_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("bench", "Measure serving, models, linear layers and attention");
  command->require_subcommand(1);
  command->footer(
      "`anyslot bench NAME --help` lists a benchmark's options. Everything is printed as a table;\n"
      "--json FILE and --csv FILE write it for other programs. Measure on an idle machine.");
  bench::add_serve_benchmark(*command, action);
  bench::add_sweep_benchmark(*command, action);
  bench::add_model_benchmark(*command, action);
  bench::add_linear_benchmark(*command, action);
  bench::add_attention_benchmark(*command, action);
}

}  // namespace anyslot::cli
