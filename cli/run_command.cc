#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <set>
#include <string>

#include "command.h"
#include "input_rows.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"
#include "progress.h"
#include "row_runner.h"
#include "run_report.h"
#include "text_file.h"

namespace anyslot::cli {
namespace {

constexpr int kMaxConcurrency = 1024;  // each takes a thread

struct RunOptions {
  EngineConfig engine;
  SamplingParams sampling;
  std::string input;
  std::string output = "-";
  int concurrency = 1;
};

Method method_of(const InputRow& row, const RunOptions& options, const Engine& engine) {
  return row.method.value_or(options.engine.method.value_or(engine.model().default_method));
}

void warn_of_row_methods(const Engine& engine, const std::vector<InputRow>& rows) {
  std::set<Method> methods;
  for (const InputRow& row : rows) {
    if (row.method && *row.method != engine.model().default_method) methods.insert(*row.method);
  }
  for (const Method method : methods) warn_unless_block_trained(engine.model(), method);
}

Status check_row_methods(const RunOptions& options, const std::vector<InputRow>& rows) {
  for (const InputRow& row : rows) {
    const Status status = row.method ? check_control(options.engine, *row.method) : Status();
    if (status.ok()) continue;
    return {status.code(),
            fmt::format("{}:{}: {}", input_name(options.input), row.line, status.message())};
  }
  return {};
}

Status run(const RunOptions& options, Interrupt& interrupt) {
  Expected<std::vector<InputRow>> rows = load_input_rows(options.input);
  if (!rows) return rows.status();
  Status status = check_row_methods(options, *rows);
  if (!status.ok()) return status;
  Expected<OutputFile> output = OutputFile::open(options.output, interrupt);
  if (!output) return output.status();
  Expected<Engine> engine = open_engine(options.engine, interrupt);
  if (!engine) return engine.status();
  warn_of_row_methods(*engine, *rows);

  RunSummary summary;
  ProgressBar progress("answering", static_cast<int64_t>(rows->size()));
  const int64_t kv_tokens_read_before = engine->stats().kv_tokens_read_total;
  const auto begin = std::chrono::steady_clock::now();
  int64_t num_done = 0;
  status =
      run_rows(*engine, *rows, options.sampling, options.concurrency, input_name(options.input),
               [&](const InputRow& row, const Completion& completion) {
                 summary.add(row, completion);
                 if (output->is_standard_output()) progress.clear();
                 Status written =
                     output->write(row_output(row, completion, method_of(row, options, *engine)));
                 progress.update(++num_done);
                 return written;
               });
  progress.clear();
  if (!status.ok()) return status;
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  const int64_t kv_tokens_read = engine->stats().kv_tokens_read_total - kv_tokens_read_before;
  status = output->commit();
  if (!status.ok()) return status;
  return write_all(STDERR_FILENO, summary.text(seconds, kv_tokens_read), "standard error");
}

}  // namespace

void add_run_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("run", "Answer the questions of a file of JSON lines");
  auto options = std::make_shared<RunOptions>();
  command
      ->add_option("--input", options->input,
                   "JSON lines, one request each; \"-\" is standard input")
      ->type_name("FILE")
      ->required();
  command
      ->add_option(
          "--output", options->output,
          "where the answers go, one JSON object per line, in the order of the input; \"-\" "
          "is standard output (default: -)")
      ->type_name("FILE");
  command
      ->add_option("--concurrency", options->concurrency,
                   "requests in the engine at once, at most 1024; 1 makes the timings speak of one "
                   "request (default: 1)")
      ->type_name("N")
      ->check(between(1, kMaxConcurrency));
  add_engine_options(*command, options->engine, EngineOptionSet::kServing);
  add_sampling_options(*command, options->sampling);
  command->footer(
      "A row is {\"id\"?, \"documents\": [string | {\"title\", \"text\"}], \"question\", "
      "\"answers\"?, "
      "\"max_tokens\"?, \"method\"?}\n"
      "or {\"segments\": [{\"type\": \"document\"|\"text\", \"text\" | \"token_ids\", \"id\"?}], "
      "\"answers\"?, \"max_tokens\"?, \"method\"?}.\n"
      "The last line on standard error is a JSON object that sums the run up.");
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return run(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
