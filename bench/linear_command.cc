#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "backend/cpu/machine_rates.h"
#include "bench_command.h"
#include "ceilings.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "linear_bench.h"
#include "machine_facts.h"
#include "matmul_rate.h"
#include "options.h"
#include "report.h"

namespace anyslot::bench {

namespace {

struct Options {
  ShapeOptions shape;
  ReportPaths paths;
  LinearBenchOptions bench;
  std::vector<int64_t> rows = {1, 4, 16, 64, 256, 512, 2048};
  std::vector<std::string> isas;  // one, or none for the best
  double max_error = kLinearErrorBound;
};

const std::vector<Column>& columns() {
  static const std::vector<Column> kColumns = {{"layer", "layer"},
                                               {"out_features", ">out"},
                                               {"in_features", ">in"},
                                               {"rows", ">rows"},
                                               {"time_us", ">us", 1},
                                               {"gflops", ">GFLOP/s", 1},
                                               {"weight_gb_per_second", ">GB/s", 1},
                                               {"onednn_time_us", ">oneDNN us", 1},
                                               {"onednn_gflops", ">oneDNN GFLOP/s", 1},
                                               {"onednn_time_ratio", ">oneDNN / ours", 2},
                                               {"bound_by", "bound by"},
                                               {"share_of_ceiling", ">of ceiling", 2},
                                               {"error", ">error", 6}};
  return kColumns;
}

Report::Row row_of(const LinearShape& shape, int64_t num_rows, const LinearResult& result,
                   const Ceilings& ceilings) {
  const LeastTime least = least_time(ceilings, result.operations, result.weight_bytes);
  return {shape.name,
          shape.out,
          shape.in,
          num_rows,
          result.seconds * 1e6,
          result.operations / result.seconds / 1e9,
          result.weight_bytes / result.seconds / 1e9,
          result.onednn_seconds * 1e6,
          result.operations / result.onednn_seconds / 1e9,
          result.onednn_seconds / result.seconds,
          least.bound_by_memory ? "memory" : "arithmetic",
          least.seconds / result.seconds,
          result.error};
}

Status check_error(const LinearShape& shape, int64_t num_rows, double error, double bound) {
  if (error <= bound) return {};
  return internal_error(
      fmt::format("wrong result: {} with {} rows: an element is off by {}, more "
                  "than {}",
                  shape.name, num_rows, error, bound));
}

/// The first wrong result is returned at the end, so that the table shows it.
Status run_all(const Options& options, const std::vector<LinearShape>& shapes, Backend& backend,
               const Ceilings& ceilings, Report& report) {
  cli::ProgressBar progress("measuring", static_cast<int64_t>(shapes.size() * options.rows.size()));
  Status wrong;
  int64_t done = 0;
  for (const LinearShape& shape : shapes) {
    const auto bench = LinearBench::create(backend, shape, options.bench);
    if (!bench) return bench.status();
    for (const int64_t num_rows : options.rows) {
      progress.update(++done);
      if (shape.most_rows > 0 && num_rows > shape.most_rows) continue;
      const Expected<LinearResult> result = (*bench)->run(num_rows);
      if (!result) return result.status();
      report.add_row(row_of(shape, num_rows, *result, ceilings));
      if (wrong.ok()) wrong = check_error(shape, num_rows, result->error, options.max_error);
    }
  }
  return wrong;
}

Status run(Options options, cli::Interrupt& interrupt) {
  const Expected<ModelConfig> model = load_config_file(options.shape.config);
  if (!model) return model.status();
  Expected<ReportFiles> files = ReportFiles::open(options.paths, interrupt);
  if (!files) return files.status();
  LinearBenchOptions& bench = options.bench;
  bench.type = options.shape.type;
  bench.num_threads = options.shape.threads_or_default();
  bench.max_isa = options.isas.empty() ? cpu::usable_instruction_sets().back() : options.isas[0];

  const Expected<std::unique_ptr<Backend>> backend =
      create_cpu_backend({.dtype = options.shape.dtype(),
                          .num_threads = bench.num_threads,
                          .max_isa = options.isas.empty() ? std::string() : bench.max_isa,
                          .int8_weights = bench.weights == WeightType::kInt8});
  if (!backend) return backend.status();
  const Expected<Ceilings> ceilings =
      measure_ceilings(bench.max_isa, options.shape.dtype(), bench.num_threads);
  if (!ceilings) return ceilings.status();
  Report::Facts facts = machine_facts();
  facts.emplace_back(
      "shape",
      fmt::format("{}, {}, weights {}", options.shape.config, compute_type_name(bench.type),
                  bench.weights == WeightType::kInt8 ? weight_type_name(bench.weights)
                                                     : compute_type_name(bench.type)));
  facts.emplace_back("backend", (*backend)->description());
  facts.emplace_back("onednn", compute_type_name(onednn_compute_type(bench.type)));
  add_ceilings_fact(bench.max_isa, options.shape.dtype(), *ceilings, facts);

  Report report("linear", std::move(facts), columns());
  if (Status status = cli::print(report.facts_text() + "\n"); !status.ok()) return status;
  Status measured = run_all(options, linear_shapes(*model), **backend, *ceilings, report);
  if (!measured.ok() && report.rows().empty()) return measured;
  if (Status status = cli::print(report.table_text()); !status.ok()) return status;
  if (Status status = files->write(report); !status.ok()) return status;
  return measured;
}

}  // namespace

void add_linear_benchmark(CLI::App& bench, cli::Action& action) {
  CLI::App* command = bench.add_subcommand(
      "linear", "The linear layers beside oneDNN's own products and the machine's ceilings");
  auto options = std::make_shared<Options>();
  add_shape_options(*command, options->shape);
  add_numbers_option(*command, "--rows", options->rows, 1,
                     "rows, that is tokens, to multiply; lm_head takes 64 at a time");
  add_list_option(*command, "--isa", options->isas,
                  "the highest instruction set to use, oneDNN included (default: the best that the "
                  "machine has)",
                  parse_instruction_sets)
      ->type_name("NAME");
  command
      ->add_option_function<std::string>(
          "--weights",
          [options](const std::string& text) {
            const Expected<WeightType> type = parse_weight_type(text);
            if (!type) throw CLI::ValidationError("--weights", type.status().message());
            options->bench.weights = *type;
          },
          "dtype, or int8: whole numbers with a scale per output channel (default: dtype)")
      ->type_name("W");
  add_run_limit_options(*command, options->bench.limits);
  command
      ->add_option("--max-error", options->max_error,
                   "the error of an element that counts as wrong (default: 0.001)")
      ->type_name("E");
  add_report_options(*command, options->paths);
  set_action(*command, options, run, action);
}

}  // namespace anyslot::bench
