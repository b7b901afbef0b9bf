#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/bench_command.h"
#include "bench/command_line.h"
#include "bench/machine_facts.h"
#include "bench/options.h"
#include "bench/report.h"
#include "cli/open_engine.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "serve.h"
#include "serve_options.h"
#include "serve_report.h"
#include "target.h"

namespace anyslot::bench {

namespace {

constexpr const char* kTargetGroup = "Target options";

struct Options {
  std::string model;  // a folder, or with base_url the name that requests give
  EngineConfig engine;
  HttpTargetOptions http;
  std::vector<Method> methods;
  ServeOptions serve;
  std::optional<int> output_len;
  std::string label;
  bool save_detailed = false;
  ReportPaths paths;

  bool over_http() const { return !http.base_url.empty(); }
};

/// What the command was told twice, or not at all.
Status check(const Options& options) {
  const bool engine = !options.model.empty() || !options.engine.random_weights_config.empty();
  if (!options.over_http() && !engine) {
    return invalid_argument(
        "nothing to measure: give --base-url for a server, or --model for the engine in process");
  }
  if (!options.over_http() && !options.model.empty()) {
    if (Status status = cli::check_model_option(options.model); !status) return status;
  }
  const ArrivalOptions& arrivals = options.serve.arrivals;
  if (arrivals.ramp != ArrivalOptions::Ramp::kNone &&
      (arrivals.ramp_start_rps <= 0 || arrivals.ramp_end_rps <= 0)) {
    return invalid_argument("a ramp needs --ramp-up-start-rps and --ramp-up-end-rps");
  }
  return {};
}

/// The target of one method; none: a server's own way, or the engine's default.
Expected<std::unique_ptr<Target>> open_target(const Options& options,
                                              std::optional<Method> method) {
  if (options.over_http()) {
    HttpTargetOptions http = options.http;
    http.model = options.model;
    http.method = method;
    if (method) {  // each method begins without documents
      http.cache_salt = fmt::format("bench-{}-{}-{}", ::getpid(),
                                    std::chrono::system_clock::now().time_since_epoch().count(),
                                    method_name(*method));
    }
    http.timeout_seconds = options.serve.timeout_seconds;
    return open_http_target(http);
  }
  EngineConfig engine = options.engine;
  engine.model_path = options.model;
  engine.method = method;
  if (method) {
    if (Status status = cli::check_control(engine, *method); !status.ok()) return status;
  }
  return open_engine_target(engine);
}

Report::Facts facts_of(const Options& options, const Target& target) {
  Report::Facts facts = machine_facts();
  for (const auto& fact : target.facts()) facts.push_back(fact);
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm utc{};
  gmtime_r(&now, &utc);
  char date[32];
  facts.emplace_back(
      "date", std::string(date, std::strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc)));
  if (!options.over_http()) {
    facts.emplace_back("dtype", std::string(compute_type_name(options.engine.dtype)));
  }
  facts.emplace_back("command", command_line());
  return facts;
}

/// The runs of a command, as far as they have come.
struct Runs {
  Report::Facts facts;
  std::vector<NamedRun> done;
  std::string failures;
  bool stopped = false;
};

Status run_method(const Options& options, std::optional<Method> method, cli::Interrupt& interrupt,
                  Runs& runs) {
  Expected<std::unique_ptr<Target>> target = open_target(options, method);
  if (!target) return target.status();
  const std::string name = method ? std::string(method_name(*method)) : "";
  if (runs.facts.empty()) {
    runs.facts = facts_of(options, **target);
    Status status = cli::print(Report("serve", runs.facts, {}).facts_text() + "\n");
    if (!status.ok()) return status;
  }
  std::optional<cli::ProgressBar> bar;
  Progress progress([&](int64_t done, int64_t total) {
    if (!bar) bar.emplace(name.empty() ? "answering" : "answering with " + name, total);
    bar->update(done);
  });
  interrupt.at_first_signal([&progress] { progress.stop(); });
  Expected<ServeResult> result = run_serve(options.serve, **target, progress);
  interrupt.at_first_signal({});
  bar.reset();
  if (!result) return result.status();
  const std::string failure = failure_text(*result);
  const RunName run{name, (*target)->model_id(), options.label,
                    std::string(workload_name(options.serve.workload.kind))};
  runs.done.push_back({run, options.serve, *std::move(result)});
  runs.stopped = progress.stopped();
  if (!failure.empty()) {
    runs.failures += fmt::format("{}{}{}", runs.failures.empty() ? "" : "; ",
                                 name.empty() ? "" : name + ": ", failure);
  }
  return {};
}

/// Prints and writes what was measured, and tells by its status whether all of it went well.
Status report_runs(const Runs& runs, bool detailed, ReportFiles& files) {
  const Report report = serve_report(runs.facts, runs.done, detailed);
  Status status = cli::print(report.table_text() + "\n" + latency_table(runs.done));
  if (!status.ok()) return status;
  status = files.write(report);
  if (!status.ok()) return status;
  if (!runs.failures.empty()) return {StatusCode::kUnavailable, runs.failures};
  if (runs.stopped) return {StatusCode::kCancelled, "stopped; what was measured is reported"};
  return {};
}

Status run(Options options, cli::Interrupt& interrupt) {
  if (Status status = check(options); !status.ok()) return status;
  const WorkloadKind kind = options.serve.workload.kind;
  const bool reads_rows = kind == WorkloadKind::kRag || kind == WorkloadKind::kLongBench ||
                          kind == WorkloadKind::kChatRag;
  options.serve.workload.output_len =
      options.output_len.value_or(reads_rows ? 0 : WorkloadOptions().output_len);
  Expected<ReportFiles> files = ReportFiles::open(options.paths, interrupt);
  if (!files) return files.status();
  std::vector<std::optional<Method>> methods(options.methods.begin(), options.methods.end());
  if (methods.empty()) methods.emplace_back(std::nullopt);
  Runs runs;
  for (const std::optional<Method>& method : methods) {
    Status status = run_method(options, method, interrupt, runs);
    if (!status.ok() && runs.done.empty()) return status;
    if (!status.ok())
      runs.failures += fmt::format("{}: {}", method_name(*method), status.message());
    if (!status.ok() || runs.stopped) break;
  }
  return report_runs(runs, options.save_detailed, *files);
}

void add_target_options(CLI::App& command, Options& options) {
  const auto add_text = [&](const char* name, std::string& value, const char* type,
                            const char* help) {
    return command.add_option(name, value, help)->type_name(type)->group(kTargetGroup);
  };
  add_text("--base-url", options.http.base_url, "URL",
           "a server of OpenAI's API, as http://127.0.0.1:8080 (default: the engine in process)");
  add_text("--model", options.model, "NAME|PATH",
           "of a server, the name that requests give (default: the first that it has); in process, "
           "a Hugging Face folder or a GGUF file");
  add_text("--random-weights", options.engine.random_weights_config, "FILE",
           "in process, instead of --model: a config.json; its weights are random")
      ->check(cli::existing_file());
  add_text("--api-key", options.http.api_key, "KEY", "sent to the server; reports hide it");
  add_text("--endpoint", options.http.endpoint, "PATH",
           "/v1/chat/completions or /v1/completions (default: /v1/chat/completions)")
      ->check(cli::one_of({"/v1/chat/completions", "/v1/completions"}));
  command
      .add_option_function<std::string>(
          "--documents-as",
          [&options](const std::string& text) {
            options.http.documents_as_field = text == "field";
          },
          "field: as \"documents\", which our server takes; prompt: in the text before the "
          "question, for others (default: field)")
      ->type_name("FORM")
      ->check(cli::one_of({"field", "prompt"}))
      ->group(kTargetGroup);
  add_list_option(
      command, "--method", options.methods,
      "one run per method: lazy, block, mepic, prefix, full; in process each in an engine of its "
      "own, over HTTP in a cache of its own (default: what the target does by itself)",
      [](const std::string& text) { return parse_each<Method>(text, parse_method); })
      ->type_name("M,...")
      ->group(kTargetGroup);
}

}  // namespace

void add_serve_benchmark(CLI::App& bench, cli::Action& action) {
  CLI::App* command = bench.add_subcommand(
      "serve", "Latency, throughput, reuse and accuracy of a server, as vllm bench serve");
  auto options = std::make_shared<Options>();
  add_target_options(*command, *options);
  add_workload_options(*command, options->serve.workload);
  command
      ->add_option("--output-len,--random-output-len", options->output_len,
                   "tokens of an answer; of files at most (default: 32, of files as they say)")
      ->type_name("N")
      ->check(cli::at_least(1));
  add_load_options(*command, options->serve);
  command->add_option("--label", options->label, "a name of the run in its report")
      ->type_name("TEXT");
  command->add_flag("--save-detailed", options->save_detailed,
                    "the JSON has lists with an entry per request as well (default: off)");
  add_report_options(*command, options->paths);
  cli::add_engine_options(*command, options->engine, cli::EngineOptionSet::kAnyTarget);
  command->footer(
      "The exit code is 1 when a request failed; what was measured is reported all the same, after "
      "Ctrl-C too.");
  set_action(*command, options, run, action);
}

}  // namespace anyslot::bench
