#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "anyslot/build_info.h"
#include "bundled_data.h"
#include "command.h"
#include "demo_measurement.h"
#include "machine_info.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"
#include "progress.h"
#include "table.h"

namespace anyslot::cli {
namespace {

struct DemoOptions {
  EngineConfig engine;
  int orders = 3;
  uint64_t seed = 1;
};

std::string threads_text(const EngineConfig& config) {
  if (config.num_threads > 0) return fmt::format("{}", config.num_threads);
  for (const auto& [name, value] : build_info()) {
    if (name == "threads") return value;
  }
  return "?";
}

std::string introduction(const DemoPlan& plan, const Engine& engine, int64_t document_tokens,
                         const DemoOptions& options) {
  const std::string cpu = machine_info().cpu;
  return fmt::format(
      "Asking {} questions about the same {} documents ({} tokens), {} time{} each, every time "
      "with the\n"
      "documents in a new order, once per method; each method has seen the documents before.\n"
      "Model {} in {}, threads: {}, CPU: {}.\n\n",
      plan.num_questions, plan.num_documents, document_tokens, options.orders,
      options.orders == 1 ? "" : "s", engine.model().name, compute_type_name(options.engine.dtype),
      threads_text(options.engine), cpu.empty() ? "unknown" : cpu);
}

constexpr std::string_view kExplanation =
    "Why: prefix caching reuses KV only as far as a prompt begins like an earlier one, so "
    "documents in a\n"
    "new order are computed again, as in full; lazy keeps one copy of each document, turns the "
    "query to\n"
    "wherever the document stands, and computes only the question.\n";

std::string results_table(const std::vector<MethodResult>& results) {
  const auto full = std::find_if(results.begin(), results.end(), [](const MethodResult& result) {
    return result.method == Method::kFull;
  });
  Table table(
      {"method", ">median time to first token", ">speed-up", ">cached tokens", ">exact match"});
  for (const MethodResult& result : results) {
    table.add_row({std::string(method_name(result.method)),
                   fmt::format("{:.1f} ms", result.ttft_ms()),
                   fmt::format("{:.1f}x", full->ttft_ms() / result.ttft_ms()),
                   fmt::format("{:.0f}%", 100 * result.cached_share()),
                   fmt::format("{:.0f}%", 100 * result.exact_match_share())});
  }
  return table.text();
}

Status demo(const DemoOptions& options, Interrupt& interrupt) {
  Expected<BundledData> bundled = find_bundled_data();
  if (!bundled) return bundled.status();
  Expected<std::vector<InputRow>> rows = load_input_rows(bundled->questions);
  if (!rows) return rows.status();
  EngineConfig config = options.engine;
  config.model_path = bundled->model;
  Expected<Engine> engine = open_engine(config, interrupt);
  if (!engine) return engine.status();

  const DemoPlan plan = plan_demo(*rows, options.orders, options.seed);
  Expected<int64_t> document_tokens = warm_up(*engine, plan);
  if (!document_tokens) return document_tokens.status();
  Status status = print(introduction(plan, *engine, *document_tokens, options));
  if (!status.ok()) return status;
  std::vector<MethodResult> results;
  {
    ProgressBar progress("asking", static_cast<int64_t>(plan.requests.size()));
    Expected<std::vector<MethodResult>> measured =
        measure_methods(*engine, plan, [&](int64_t done) { progress.update(done); });
    if (!measured) return measured.status();
    results = *std::move(measured);
  }
  return print(results_table(results) + "\n" + std::string(kExplanation));
}

}  // namespace

void add_demo_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("demo", "Show what AnySlot is for, on the bundled model and documents");
  auto options = std::make_shared<DemoOptions>();
  command
      ->add_option("--orders", options->orders,
                   "orders of the documents in which each question is asked (default: 3)")
      ->type_name("N")
      ->check(at_least(1));
  command->add_option("--seed", options->seed, "seed of the orders (default: 1)")
      ->type_name("S")
      ->check(is_seed());
  add_engine_options(*command, options->engine, EngineOptionSet::kMeasuring);
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return demo(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
