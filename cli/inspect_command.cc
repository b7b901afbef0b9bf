#include <memory>
#include <string>

#include "anyslot/inspect.h"
#include "command.h"
#include "inspect_report.h"
#include "options.h"
#include "output_file.h"

namespace anyslot::cli {
namespace {

struct InspectCall {
  std::string model;
  InspectOptions options;
  bool json = false;
};

/// The report stands even when the model cannot be served.
Status inspect(const InspectCall& call) {
  const Expected<ModelReport> report = inspect_model(call.model, call.options);
  if (!report) return report.status();
  Status status =
      print(call.json ? inspect_json(*report, call.options) : inspect_text(*report, call.options));
  if (!status.ok() || report->problems.empty()) return status;
  return report->problems.front();
}

}  // namespace

void add_inspect_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "inspect", "Tell what a model is, what memory it takes and whether it can be served");
  auto call = std::make_shared<InspectCall>();
  command->add_option("MODEL", call->model, "a GGUF file, or the folder of a Hugging Face model")
      ->type_name("PATH")
      ->check(existing_model())
      ->required();
  add_kv_cache_option(
      *command,
      "memory of the KV pool that documents are to fit, as 512MiB or 4GiB (default: 4GiB)",
      call->options.kv_cache_bytes);
  add_kv_cache_type_option(*command, call->options.kv_cache_dtype);
  command
      ->add_option("--document-tokens", call->options.document_tokens,
                   "tokens of each document (default: 512)")
      ->type_name("N")
      ->check(at_least(1));
  command
      ->add_option("--max-model-len", call->options.max_model_len,
                   "tokens of prompt and answer together, at most, on which longrope and windows "
                   "depend (default: what the model was trained for)")
      ->type_name("N")
      ->check(at_least(1));
  command->add_flag("--json", call->json, "print one JSON object (default: off)");
  command->footer(
      "Reads settings, tokenizer, templates and the headers of the weights, never the weights.\n"
      "Exit code 1 when the model cannot be served; what can be read of it is printed first.");
  command->callback([call, &action] { action = [call](Interrupt&) { return inspect(*call); }; });
}

}  // namespace anyslot::cli
