#include <fmt/format.h>
#include <unistd.h>

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

Status write_tensor(OutputFile& output, const std::vector<float>& logits, int64_t num_tokens,
                    int64_t vocab_size) {
  const Expected<std::string> header =
      float32_tensor_header("logits", logits, {num_tokens, vocab_size});
  if (!header) return header.status();
  Status status = output.write(*header);
  if (!status.ok()) return status;
  status = output.write(
      {reinterpret_cast<const char*>(logits.data()), logits.size() * sizeof(logits.front())});
  return status.ok() ? output.commit() : status;
}

Status write_logits(const LogitsOptions& options, Interrupt& interrupt) {
  Expected<std::vector<Segment>> segments = load_segments(options.input);
  if (!segments) return segments.status();
  Expected<OutputFile> output = OutputFile::open(options.output, interrupt);
  if (!output) return output.status();
  Expected<Engine> engine = open_engine(options.engine, interrupt);
  if (!engine) return engine.status();
  Request request;
  request.segments = *std::move(segments);
  request.sampling.max_tokens = 1;
  request.prompt_logits = true;
  Expected<Completion> completion = complete(*engine, request);
  if (!completion) return completion.status();
  const int64_t vocab_size = engine->model().vocab_size;
  const auto num_tokens = static_cast<int64_t>(completion->prompt_logits.size()) / vocab_size;
  Status status = write_tensor(*output, completion->prompt_logits, num_tokens, vocab_size);
  if (!status.ok()) return status;
  return write_all(STDERR_FILENO, fmt::format("logits [{}, {}], float32\n", num_tokens, vocab_size),
                   "standard error");
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
                   "safetensors file with \"logits\", float32 [num_text_tokens, vocab]; \"-\" is "
                   "standard output")
      ->type_name("FILE")
      ->required();
  add_engine_options(*command, options->engine, EngineOptionSet::kServing);
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return write_logits(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
