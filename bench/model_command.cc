#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "bench_command.h"
#include "cli/open_engine.h"
#include "cli/options.h"
#include "cli/output_file.h"
#include "cli/progress.h"
#include "cli/statistics.h"
#include "machine_facts.h"
#include "model_bench.h"
#include "options.h"
#include "peer.h"
#include "report.h"

namespace anyslot::bench {

namespace {

struct Options {
  EngineConfig engine;
  ModelBenchOptions bench;
  std::string peer;  // a command; empty: none
  ReportPaths paths;
};

Report::Facts facts_of(const Engine& engine, const Options& options) {
  const ModelInfo& model = engine.model();
  Report::Facts facts = machine_facts();
  facts.emplace_back("model",
                     fmt::format("{}, {:.1f} million parameters, {}{}", model.name,
                                 static_cast<double>(model.num_parameters) / 1e6,
                                 compute_type_name(options.engine.dtype),
                                 options.engine.model_path.empty() ? ", random weights" : ""));
  facts.emplace_back("backend", model.backend);
  facts.emplace_back("repetitions", fmt::format("{}, in rounds over all tests; mean and standard "
                                                "deviation of a sample",
                                                options.bench.repetitions));
  if (!options.peer.empty()) {
    facts.emplace_back("peer", options.peer + ", in turns; the ratio is the median of the rounds'");
  }
  return facts;
}

/// What the whole prompt took, so the time to its first token, or the whole answer.
double milliseconds_of(const ModelTest& test) {
  const int64_t tokens =
      test.prompt_tokens > 0 ? test.prompt_tokens : test.generated_tokens * test.batch;
  return static_cast<double>(tokens) / cli::mean(test.tokens_per_second) * 1e3;
}

/// The engine's rate over the peer's: the median over the rounds.
nlohmann::ordered_json ratio_to_peer(const ModelTest& test) {
  if (test.peer_tokens_per_second.empty()) return nullptr;
  std::vector<double> ratios;
  for (size_t i = 0; i < test.peer_tokens_per_second.size(); ++i) {
    ratios.push_back(test.tokens_per_second[i] / test.peer_tokens_per_second[i]);
  }
  return cli::median(ratios);
}

nlohmann::ordered_json mean_of_peer(const ModelTest& test) {
  if (test.peer_tokens_per_second.empty()) return nullptr;
  return cli::mean(test.peer_tokens_per_second);
}

void add_rows(const std::vector<ModelTest>& tests, Report& report) {
  for (const ModelTest& test : tests) {
    report.add_row({test.name(), method_name(test.method), test.prompt_tokens,
                    test.generated_tokens, test.depth, test.batch, milliseconds_of(test),
                    cli::mean(test.tokens_per_second),
                    cli::standard_deviation(test.tokens_per_second), test.tokens_per_second,
                    mean_of_peer(test), test.peer_tokens_per_second, ratio_to_peer(test)});
  }
}

Status check(const Options& options) {
  const int64_t most = std::ranges::max(options.bench.batches);
  if (most > options.engine.max_running_requests) {
    return invalid_argument(
        fmt::format("--batch {}: the engine runs {} requests at once; raise --max-running-requests",
                    most, options.engine.max_running_requests));
  }
  if (!options.peer.empty() && (most > 1 || options.bench.reorder)) {
    return invalid_argument(
        "--peer compares single requests behind cached text: leave out --batch and --reorder");
  }
  return {};
}

Status run(const Options& options, cli::Interrupt& interrupt) {
  if (Status status = check(options); !status.ok()) return status;
  Expected<ReportFiles> files = ReportFiles::open(options.paths, interrupt);
  if (!files) return files.status();
  Expected<Engine> engine = Engine::open(options.engine);
  if (!engine) return engine.status();
  interrupt.at_end(engine->trace_finisher());
  std::unique_ptr<Peer> peer;
  if (!options.peer.empty()) {
    Expected<std::unique_ptr<Peer>> started = Peer::start(options.peer);
    if (!started) return started.status();
    peer = std::move(*started);
  }
  Report report("model", facts_of(*engine, options),
                {{"test", "test", 0},
                 {"method", "method", 0},
                 {"prompt_tokens", "", 0},
                 {"generated_tokens", "", 0},
                 {"depth", "", 0},
                 {"batch", "", 0},
                 {"milliseconds", ">ms", 1},
                 {"tokens_per_second", ">tokens/s", 2},
                 {"standard_deviation", ">+-", 2},
                 {"samples", "", 0},
                 {"peer_tokens_per_second", peer ? ">peer's" : "", 2},
                 {"peer_samples", "", 0},
                 {"over_peer", peer ? ">ratio" : "", 2}});
  if (Status status = cli::print(report.facts_text() + "\n"); !status.ok()) return status;
  std::vector<ModelTest> tests = plan_model_tests(options.bench);
  {
    cli::ProgressBar progress("measuring",
                              static_cast<int64_t>(tests.size()) * (options.bench.repetitions + 1));
    RunTest run_peer;
    if (peer) run_peer = [&peer](const ModelTest& test) { return peer->run(test); };
    Status status = run_model_tests(*engine, options.bench, run_peer, tests,
                                    [&](int64_t done) { progress.update(done); });
    if (!status.ok()) return status;
  }
  add_rows(tests, report);
  if (Status status = cli::print(report.table_text()); !status.ok()) return status;
  return files->write(report);
}

}  // namespace

void add_model_benchmark(CLI::App& bench, cli::Action& action) {
  CLI::App* command =
      bench.add_subcommand("model", "Tokens per second of prompts and answers, as llama-bench's");
  auto options = std::make_shared<Options>();
  ModelBenchOptions& tests = options->bench;
  add_numbers_option(*command, "--prompt-tokens", tests.prompt_tokens, 1,
                     "lengths of the prompts, tokens");
  add_numbers_option(*command, "--depth", tests.depths, 0,
                     "cached tokens before the prompt or the answer");
  command
      ->add_option("--generate", tests.generate,
                   "tokens of the answers, 0 measures none (default: 32)")
      ->type_name("N")
      ->check(cli::at_least(0));
  add_list_option(
      *command, "--method", tests.methods,
      "methods to measure: lazy, block, mepic, prefix, full; they differ behind a depth "
      "(default: lazy)",
      [](const std::string& text) { return parse_each<Method>(text, parse_method); })
      ->type_name("M,...");
  command
      ->add_option("--document-tokens", tests.document_tokens,
                   "tokens of the documents that make up a depth (default: 125)")
      ->type_name("N")
      ->check(cli::at_least(1));
  add_numbers_option(*command, "--batch", tests.batches, 1,
                     "requests that decode at once, each behind a depth of its own");
  command->add_flag("--reorder", tests.reorder,
                    "give methods prefix and full the documents of a depth as text in a new order "
                    "each time: the time until they have computed what lazy finds (default: off)");
  command
      ->add_option("--repetitions", tests.repetitions,
                   "measurements of each test, after one for warmth (default: 5)")
      ->type_name("N")
      ->check(cli::at_least(1));
  command
      ->add_option("--peer", options->peer,
                   "a program to compare with, run in turns: it reads a line of JSON per test, "
                   "{\"prompt_tokens\", \"generated_tokens\", \"depth\"}, and answers with "
                   "{\"tokens_per_second\"}")
      ->type_name("COMMAND");
  add_report_options(*command, options->paths);
  cli::add_engine_options(*command, options->engine, cli::EngineOptionSet::kBenchmark);
  set_action(*command, options, run, action);
}

}  // namespace anyslot::bench
