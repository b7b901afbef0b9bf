#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "attention_bench.h"
#include "attention_check.h"
#include "backend/cpu/machine_rates.h"
#include "base/compute_type.h"
#include "bench_command.h"
#include "ceilings.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "machine_facts.h"
#include "options.h"
#include "report.h"

namespace anyslot::bench {

namespace {

struct Options {
  ShapeOptions shape;
  ReportPaths paths;
  AttentionBenchOptions bench;
  KvCacheType kv = KvCacheType::kComputeType;
  std::vector<int64_t> query_tokens = {1, 64};
  std::vector<int64_t> contexts = {4096, 16384};
  std::vector<int64_t> batches = {1, 8};
  std::vector<Method> methods = {Method::kLazy, Method::kBlock, Method::kMepic};
  std::vector<Sharing> sharing = {Sharing::kOwn, Sharing::kShared, Sharing::kUnshared};
  std::vector<std::string> isas;
  int64_t document_tokens = 1024;
  double max_error = 0;  // 0: row_error_bound
};

/// All combinations, less those that only repeat another: one request shares with nobody, and
/// copies of method block are private.
std::vector<AttentionCase> plan_cases(const Options& options) {
  std::vector<AttentionCase> cases;
  const auto add_ways_of_sharing = [&](AttentionCase attention_case) {
    const bool can_share = attention_case.batch > 1 && attention_case.context > 0 &&
                           attention_case.method != Method::kBlock;
    for (const Sharing sharing : options.sharing) {
      if (!can_share && sharing != options.sharing.front()) continue;
      attention_case.sharing = can_share ? sharing : Sharing::kOwn;
      cases.push_back(attention_case);
    }
  };
  for (const int64_t query_tokens : options.query_tokens) {
    for (const int64_t context : options.contexts) {
      for (const int64_t batch : options.batches) {
        for (const Method method : options.methods) {
          add_ways_of_sharing(
              {method, Sharing::kOwn, query_tokens, context, batch, options.document_tokens});
        }
      }
    }
  }
  return cases;
}

std::vector<Column> columns_of(const Options& options) {
  std::vector<Column> columns = {{"isa", "isa", 0},
                                 {"method", "method", 0},
                                 {"documents", "documents", 0},
                                 {"query_tokens", ">queries", 0},
                                 {"context", ">context", 0},
                                 {"batch", ">batch", 0},
                                 {"document_tokens", "", 0},
                                 {"time_us", ">us", 1},
                                 {"plan_us", ">plan us", 1},
                                 {"gflops", ">GFLOP/s", 1},
                                 {"read_gb_per_second", ">GB/s", 1},
                                 {"kv_megabytes_read", ">MB read", 2},
                                 {"kv_megabytes_distinct", ">MB distinct", 2},
                                 {"least_time_us", ">least us", 1},
                                 {"bound_by", "bound by", 0},
                                 {"share_of_ceiling", ">of ceiling", 2},
                                 {"error", ">error", 5}};
  if (options.bench.angles_zero) {
    columns.push_back({"over_angles_zero", ">over angles 0", 3});
    columns.push_back({"over_unturned", ">over unturned", 3});
  }
  return columns;
}

Report::Row row_of(const std::string& isa, const AttentionCase& attention_case,
                   const AttentionResult& result, const Ceilings& ceilings,
                   const Options& options) {
  const LeastTime least = least_time(ceilings, result.operations, result.bytes_read);
  Report::Row row = {isa,
                     method_name(attention_case.method),
                     sharing_name(attention_case.sharing),
                     attention_case.query_tokens,
                     attention_case.context,
                     attention_case.batch,
                     attention_case.document_tokens,
                     result.seconds * 1e6,
                     result.plan_seconds * 1e6,
                     result.operations / result.seconds / 1e9,
                     result.bytes_read / result.seconds / 1e9,
                     result.bytes_read / 1e6,
                     result.distinct_bytes / 1e6,
                     least.seconds * 1e6,
                     least.bound_by_memory ? "memory" : "arithmetic",
                     least.seconds / result.seconds,
                     result.error};
  if (options.bench.angles_zero) {
    row.emplace_back(result.zero_ratio);
    row.emplace_back(result.unturned_ratio);
  }
  return row;
}

Status check_error(const std::string& isa, const AttentionCase& attention_case, double error,
                   double bound) {
  if (error <= bound) return {};
  return internal_error(fmt::format(
      "wrong result: {}, method {}, {} query tokens over {}, batch {}: a row's error is {} of its "
      "length, more than {}",
      isa, method_name(attention_case.method), attention_case.query_tokens, attention_case.context,
      attention_case.batch, error, bound));
}

int64_t most_blocks(const std::vector<AttentionCase>& cases) {
  int64_t most = 0;
  for (const AttentionCase& attention_case : cases) {
    most = std::max(most, blocks_of(attention_case));
  }
  return most;
}

using CeilingsByIsa = std::map<std::string, Ceilings>;

Expected<CeilingsByIsa> measure_all_ceilings(const Options& options, Report::Facts& facts) {
  CeilingsByIsa all;
  for (const std::string& isa : options.isas) {
    const Expected<Ceilings> ceilings =
        measure_ceilings(isa, options.bench.dtype, options.bench.num_threads);
    if (!ceilings) return ceilings.status();
    add_ceilings_fact(isa, options.bench.dtype, *ceilings, facts);
    all[isa] = *ceilings;
  }
  return all;
}

/// Measures every case on every instruction set. The first wrong result is returned at the end, so
/// that the table shows it.
Status run_cases(const Options& options, const ModelConfig& model, const CeilingsByIsa& ceilings,
                 Report& report) {
  const std::vector<AttentionCase> cases = plan_cases(options);
  const double bound = options.max_error > 0
                           ? options.max_error
                           : row_error_bound(options.bench.dtype, options.bench.kv_dtype);
  cli::ProgressBar progress("measuring", static_cast<int64_t>(cases.size() * options.isas.size()));
  Status wrong;
  int64_t done = 0;
  for (const std::string& isa : options.isas) {
    AttentionBenchOptions bench_options = options.bench;
    bench_options.max_isa = isa;
    const Expected<std::unique_ptr<AttentionBench>> bench =
        AttentionBench::create(model, most_blocks(cases), bench_options);
    if (!bench) return bench.status();
    for (const AttentionCase& attention_case : cases) {
      const Expected<AttentionResult> result = (*bench)->run(attention_case);
      if (!result) return result.status();
      report.add_row(row_of(isa, attention_case, *result, ceilings.at(isa), options));
      if (wrong.ok()) wrong = check_error(isa, attention_case, result->error, bound);
      progress.update(++done);
    }
  }
  return wrong;
}

Status run(Options options, cli::Interrupt& interrupt) {
  const Expected<ModelConfig> model = load_config_file(options.shape.config);
  if (!model) return model.status();
  Expected<ReportFiles> files = ReportFiles::open(options.paths, interrupt);
  if (!files) return files.status();
  options.bench.dtype = options.shape.dtype();
  options.bench.kv_dtype = kv_dtype_of(options.kv, options.shape.type);
  options.bench.num_threads = options.shape.threads_or_default();
  const std::vector<std::string> usable = cpu::usable_instruction_sets();
  if (usable.empty()) return failed_precondition("this processor has no attention kernels to time");
  if (options.isas.empty()) options.isas = {usable.back()};

  Report::Facts facts = machine_facts();
  facts.emplace_back(
      "shape", fmt::format("{}: {} heads, {} kv heads, head_dim {}, {}{}", options.shape.config,
                           model->num_heads, model->num_kv_heads, model->head_dim,
                           dtype_name(options.bench.dtype),
                           options.kv == KvCacheType::kComputeType
                               ? std::string()
                               : fmt::format(", KV {}", kv_cache_type_name(options.kv))));
  facts.emplace_back("threads", std::to_string(options.bench.num_threads));
  const Expected<CeilingsByIsa> ceilings = measure_all_ceilings(options, facts);
  if (!ceilings) return ceilings.status();
  Report report("attention", std::move(facts), columns_of(options));
  if (Status status = cli::print(report.facts_text() + "\n"); !status.ok()) return status;
  Status measured = run_cases(options, *model, *ceilings, report);
  if (!measured.ok() && report.rows().empty()) return measured;
  if (Status status = cli::print(report.table_text()); !status.ok()) return status;
  if (Status status = files->write(report); !status.ok()) return status;
  return measured;
}

/// Requests that share 16 documents of 125 tokens, from 1 to 32 of them.
void set_sharing_curve(Options& options) {
  options.query_tokens = {1};
  options.contexts = {2000};
  options.document_tokens = 125;
  options.batches = {1, 2, 4, 8, 16, 32};
  options.methods = {Method::kLazy};
  options.sharing = {Sharing::kShared, Sharing::kUnshared};
}

/// A method that encodes documents alone.
Expected<Method> parse_reuse(const std::string& name) {
  for (const Method method : {Method::kLazy, Method::kBlock, Method::kMepic}) {
    if (name == method_name(method)) return method;
  }
  return invalid_argument("\"" + name + "\" is not one of lazy, block, mepic");
}

void add_case_options(CLI::App& command, Options& options) {
  add_numbers_option(command, "--query-tokens", options.query_tokens, 1,
                     "tokens that each request computes");
  add_numbers_option(command, "--context", options.contexts, 0,
                     "tokens of the documents before them");
  add_numbers_option(command, "--batch", options.batches, 1, "requests in the step");
  command
      .add_option("--document-tokens", options.document_tokens,
                  "tokens of a document (default: 1024)")
      ->type_name("N")
      ->check(cli::at_least(1));
  add_list_option(command, "--method", options.methods, "lazy, block or mepic (default: all three)",
                  [](const std::string& text) { return parse_each<Method>(text, parse_reuse); })
      ->type_name("M,...");
  add_list_option(
      command, "--documents", options.sharing,
      "own: each request has its own documents; shared: all have the same and read them "
      "together; unshared: the same, but each reads for itself (default: all three)",
      [](const std::string& text) { return parse_each<Sharing>(text, parse_sharing); })
      ->type_name("S,...");
  command.add_flag_callback(
      "--curve", [&options] { set_sharing_curve(options); },
      "the cost of sharing: 1 to 32 requests of 1 token over 16 shared documents of 125");
}

}  // namespace

void add_attention_benchmark(CLI::App& bench, cli::Action& action) {
  CLI::App* command = bench.add_subcommand(
      "attention", "Attention of one layer beside the machine's ceilings, results checked");
  auto options = std::make_shared<Options>();
  add_shape_options(*command, options->shape);
  cli::add_kv_cache_type_option(*command, options->kv);
  add_case_options(*command, *options);
  add_list_option(*command, "--isa", options->isas,
                  "instruction sets to measure, or \"all\" (default: the best)",
                  parse_instruction_sets)
      ->type_name("NAME,...");
  command->add_flag("--angles-zero", options->bench.angles_zero,
                    "also time each case with all angles 0 and with nothing turned, in turns");
  add_run_limit_options(*command, options->bench.limits);
  command
      ->add_option("--checked-rows", options->bench.checked_rows,
                   "rows of each case that the reference checks (default: 3)")
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      ->add_option("--max-error", options->max_error,
                   "the error of a row, of its length, that counts as wrong (default: 2^-6 in "
                   "bfloat16, 1e-5 in float32)")
      ->type_name("E");
  add_report_options(*command, options->paths);
  set_action(*command, options, run, action);
}

}  // namespace anyslot::bench
