#include <fmt/format.h>

#include <memory>
#include <string>

#include "anyslot/tensor_file.h"
#include "command.h"
#include "completion.h"
#include "input_rows.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"

namespace anyslot::cli {
namespace {

struct LogitsOptions {
  EngineConfig engine;
  std::string input;
  std::string output;
};

/// Fails before the work when the output could not be written after it.
Status check_writable(const std::string& path, Interrupt& interrupt) {
  if (path == "-") return invalid_argument("--output must name a file, \"-\" is not possible here");
  return OutputFile::open(path, interrupt).status();
}

Status write_logits(const LogitsOptions& options, Interrupt& interrupt) {
  Expected<std::vector<Segment>> segments = load_segments(options.input);
  if (!segments) return segments.status();
  Status status = check_writable(options.output, interrupt);
  if (!status.ok()) return status;
  Expected<Engine> engine = open_engine(options.engine);
  if (!engine) return engine.status();
  Request request;
  request.segments = *std::move(segments);
  request.sampling.max_tokens = 1;
  request.prompt_logits = true;
  Expected<Completion> completion = complete(*engine, request);
  if (!completion) return completion.status();
  const int64_t vocab_size = engine->model().vocab_size;
  const auto num_tokens = static_cast<int64_t>(completion->prompt_logits.size()) / vocab_size;
  status = write_float32_tensor(options.output, "logits", completion->prompt_logits,
                                {num_tokens, vocab_size});
  if (!status.ok()) return status;
  return print(
      fmt::format("{}: logits [{}, {}], float32\n", options.output, num_tokens, vocab_size));
}

}  // namespace

void add_logits_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("logits", "Write the logits of every token of the text segments");
  auto options = std::make_shared<LogitsOptions>();
  command
      ->add_option(
          "--input", options->input,
          "JSON: {\"segments\": [{\"type\": \"document\"|\"text\", \"token_ids\": [...]}]}; "
          "\"text\" instead of token_ids needs a tokenizer; \"-\" is standard input")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("--output", options->output,
                   "safetensors file with \"logits\", float32 [num_text_tokens, vocab]")
      ->type_name("FILE")
      ->required();
  add_engine_options(*command, options->engine, EngineOptionSet::kServing);
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return write_logits(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
