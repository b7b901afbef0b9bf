#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "bench/bench_command.h"
#include "bench/command_line.h"
#include "bench/machine_facts.h"
#include "bench/options.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/table.h"
#include "html_report.h"
#include "sweep.h"

namespace anyslot::bench {

namespace {

using Json = nlohmann::ordered_json;

struct Options {
  SweepOptions sweep;
  std::string report = "sweep.html";
  std::string json;
};

/// Stops the run at hand, and with it the sweep.
class Stopper {
 public:
  void stop() {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
    if (progress_ != nullptr) progress_->stop();
  }
  bool stopped() const {
    const std::lock_guard lock(mutex_);
    return stopped_;
  }
  /// The progress of the run at hand; null: none runs.
  void watch(Progress* progress) {
    const std::lock_guard lock(mutex_);
    progress_ = progress;
    if (stopped_ && progress_ != nullptr) progress_->stop();
  }

 private:
  mutable std::mutex mutex_;
  bool stopped_ = false;
  Progress* progress_ = nullptr;
};

/// The point in an engine of its own, so that its cache is empty.
Expected<ServeResult> run_point(const SweepOptions& options, const SweepPoint& point, Method method,
                                Stopper& stopper) {
  EngineConfig config = options.engine;
  config.method = method;
  if (point.kv_cache_bytes > 0) config.kv_cache_bytes = point.kv_cache_bytes;
  const Expected<std::unique_ptr<Target>> target = open_engine_target(config);
  if (!target) return target.status();
  ServeOptions serve = point.serve;
  if (method == Method::kFull) serve.num_warmups = 0;  // it keeps nothing of them
  Progress progress;
  stopper.watch(&progress);
  Expected<ServeResult> result = run_serve(serve, **target, progress);
  stopper.watch(nullptr);
  return result;
}

Expected<SweepFacts> measure_facts(const SweepOptions& options, Stopper& stopper, Json& facts) {
  SweepFacts result;
  {
    const Expected<Engine> engine = Engine::open(options.engine);
    if (!engine) return engine.status();
    const ModelInfo& model = engine->model();
    result.kv_bytes_per_token = model.kv_bytes_per_token;
    result.max_model_len = model.max_model_len;
    facts["model"] = fmt::format("{}, {:.1f} million parameters, {}", model.name,
                                 static_cast<double>(model.num_parameters) / 1e6,
                                 compute_type_name(options.engine.dtype));
    facts["backend"] = model.backend;
  }
  if (!options.request_rates.empty()) return result;
  SweepPoint alone = single_request(options);
  const Expected<ServeResult> run = run_point(options, alone, Method::kFull, stopper);
  if (!run) return run.status();
  result.full_seconds = run->metrics.e2el_ms.mean / 1e3;
  return result;
}

/// A number of a row; "-" where nobody could tell.
std::string cell(const Json& row, const std::string& field, int decimals) {
  const Json& value = row.at(field);
  return value.is_null() ? "-" : fmt::format("{:.{}f}", value.get<double>(), decimals);
}

std::string figures_table(const Json& figures) {
  cli::Table table({"figure", ">x", "method", ">TTFT ms", ">tokens/s", ">hit ratio",
                    ">cached tokens", ">KV MiB", ">failed"});
  for (const Json& figure : figures) {
    const std::string x = figure.at("x").at("field");
    for (const Json& row : figure.at("rows")) {
      table.add_row({figure.at("id"), fmt::format("{:g}", row.at(x).get<double>()),
                     row.at("series"), cell(row, "mean_ttft_ms", 1),
                     cell(row, "output_throughput", 0), cell(row, "hit_ratio", 3),
                     cell(row, "cached_tokens", 0), cell(row, "peak_kv_mib", 1),
                     row.at("failed").dump()});
    }
  }
  return table.text();
}

Status write_file(cli::OutputFile& file, const std::string& text) {
  if (Status status = file.write(text); !status.ok()) return status;
  return file.commit();
}

Status report(const Json& result, cli::OutputFile& page, std::optional<cli::OutputFile>& json) {
  const Json& figures = result.at("figures");
  if (Status status = cli::print(figures_table(figures)); !status.ok()) return status;
  const std::string summary = result.at("summary");
  if (!summary.empty()) {
    if (Status status = cli::print("\n" + summary + "\n"); !status.ok()) return status;
  }
  if (Status status = write_file(page, html_report(result)); !status.ok()) return status;
  if (json) {
    if (Status status = write_file(*json, result.dump(2) + "\n"); !status.ok()) return status;
  }
  const int64_t failed = failed_requests(figures);
  if (failed > 0) return internal_error(fmt::format("{} requests failed", failed));
  return {};
}

Status run(const Options& options, cli::Interrupt& interrupt) {
  Expected<cli::OutputFile> page = cli::OutputFile::open(options.report, interrupt);
  if (!page) return page.status();
  std::optional<cli::OutputFile> json;
  if (!options.json.empty()) {
    Expected<cli::OutputFile> opened = cli::OutputFile::open(options.json, interrupt);
    if (!opened) return opened.status();
    json.emplace(std::move(*opened));
  }
  Stopper stopper;
  interrupt.at_first_signal([&stopper] { stopper.stop(); });
  Json facts = Json::object();
  for (const auto& [name, value] : machine_facts()) facts[name] = value;
  const Expected<SweepFacts> sweep_facts = measure_facts(options.sweep, stopper, facts);
  if (!sweep_facts) return sweep_facts.status();
  const Expected<std::vector<SweepFigure>> figures = plan_sweep(options.sweep, *sweep_facts);
  if (!figures) return figures.status();
  int64_t num_runs = 0;
  for (const SweepFigure& figure : *figures) num_runs += std::ssize(figure.points);
  num_runs *= std::ssize(options.sweep.methods);

  Json result = {
      {"benchmark", "sweep"},      {"title", ""},   {"summary", ""}, {"ranking", nullptr},
      {"command", command_line()}, {"facts", facts}};
  {
    cli::ProgressBar bar("sweeping", num_runs);
    Expected<Json> rows = run_sweep(
        *figures, options.sweep.methods,
        [&](const SweepPoint& point, Method method) {
          return run_point(options.sweep, point, method, stopper);
        },
        [&] { return stopper.stopped(); }, [&](int64_t done) { bar.update(done); });
    if (!rows) return rows.status();
    result["figures"] = *std::move(rows);
  }
  result["title"] = "Documents in any slot: " + facts["model"].get<std::string>();
  result["ranking"] = sweep_ranking(result["figures"]);
  result["summary"] = sweep_summary(result["ranking"]);
  if (stopper.stopped()) result["facts"]["stopped"] = "before all runs were done";
  interrupt.at_first_signal({});
  return report(result, *page, json);
}

}  // namespace

void add_sweep_benchmark(CLI::App& bench, cli::Action& action) {
  CLI::App* command = bench.add_subcommand(
      "sweep", "The methods over rates, concurrency, memory and documents, as a page of charts");
  auto options = std::make_shared<Options>();
  SweepOptions& sweep = options->sweep;
  add_list_option(
      *command, "--figures", sweep.figures,
      fmt::format("what to measure: {} (default: all)", fmt::join(sweep_figure_names(), ", ")),
      [](const std::string& text) -> Expected<std::vector<std::string>> {
        return split_list(text);
      })
      ->type_name("F,...");
  add_list_option(*command, "--methods", sweep.methods, "methods to compare (default: all five)",
                  [](const std::string& text) { return parse_each<Method>(text, parse_method); })
      ->type_name("M,...");
  const auto add_number = [&](const std::string& name, int& value, const std::string& help) {
    command->add_option(name, value, fmt::format("{} (default: {})", help, value))
        ->type_name("N")
        ->check(cli::at_least(1));
  };
  add_number("--num-documents", sweep.num_documents, "documents that prompts draw from");
  add_number("--documents-per-prompt", sweep.documents_per_prompt, "documents of a prompt");
  add_number("--document-len", sweep.document_len, "tokens of a document");
  add_number("--question-len", sweep.question_len, "tokens of the question");
  add_number("--output-len", sweep.output_len, "tokens of the answer");
  add_number("--num-prompts", sweep.num_prompts, "requests of a run without a rate, at least");
  command->add_option("--zipf", sweep.zipf, "exponent of skewed popularity (default: 2.1)")
      ->type_name("S")
      ->check(cli::number_where([](double x) { return x >= 0; }, "of at least 0"));
  command
      ->add_option("--request-rates", sweep.request_rates,
                   "requests per second (default: 0.5, 2 and 8 times what method full serves)")
      ->type_name("R,...")
      ->delimiter(',')
      ->check(cli::number_where([](double x) { return x > 0; }, "above 0"));
  command
      ->add_option("--run-seconds", sweep.run_seconds,
                   "how long requests come in a run with a rate (default: 2)")
      ->type_name("S")
      ->check(cli::number_where([](double x) { return x > 0; }, "above 0"));
  command->add_option("--seed", sweep.seed, "of documents, questions and arrivals (default: 0)")
      ->type_name("N")
      ->check(cli::is_seed());
  command->add_option("--report", options->report, "the page to write (default: sweep.html)")
      ->type_name("FILE");
  command->add_option("--json", options->json, "write the same numbers as JSON")->type_name("FILE");
  cli::add_engine_options(*command, sweep.engine, cli::EngineOptionSet::kBenchmark);
  command->footer(
      "Each run has an engine of its own, in process. The exit code is 1 when a request failed;\n"
      "Ctrl-C stops the sweep, and the page shows what was measured. Measure on an idle machine.");
  set_action(*command, options, run, action);
}

}  // namespace anyslot::bench
