#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>

#include "command.h"
#include "completion.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"
#include "text_file.h"

namespace anyslot::cli {
namespace {

struct AskOptions {
  EngineConfig engine;
  SamplingParams sampling;
  std::vector<std::string> documents;
  std::string question;
};

/// --document takes any number of files, so a question that follows it is the last of them.
Status separate_question(AskOptions& options) {
  if (options.question.empty() && options.documents.size() > 1) {
    options.question = options.documents.back();
    options.documents.pop_back();
    std::error_code error;
    if (std::filesystem::exists(options.question, error)) {
      return invalid_argument(fmt::format(
          "no question: the last argument, {}, is a file; end the call with the question in quotes",
          options.question));
    }
  }
  if (options.question.find_first_not_of(" \t\r\n") == std::string::npos) {
    return invalid_argument("no question: end the call with the question in quotes");
  }
  if (find_invalid_utf8(options.question)) return invalid_argument("the question is not UTF-8");
  return {};
}

Expected<Document> load_document(const std::string& path) {
  Expected<std::string> text = read_file(path);
  if (!text) return text.status();
  if (const auto offset = find_invalid_utf8(*text)) {
    return invalid_argument(fmt::format(
        "{} is not a text: invalid UTF-8 at byte {}; convert it to UTF-8", path, *offset + 1));
  }
  if (text->find('\0') != std::string::npos) {
    return invalid_argument(fmt::format("{} is not a text: it holds zero bytes", path));
  }
  const size_t end = text->find_last_not_of(" \t\r\n");  // the template ends the document itself
  if (end == std::string::npos) return invalid_argument(fmt::format("{} is empty", path));
  text->erase(end + 1);
  return Document{std::filesystem::path(path).stem().string(), *std::move(text), path};
}

/// What ended an answer that the model would have continued; empty for a whole answer.
std::string_view cut_text(const Completion& completion, const SamplingParams& sampling) {
  if (completion.finish_reason != FinishReason::kLength) return "";
  return completion.usage.completion_tokens < sampling.max_tokens
             ? ", answer cut at the model's length (--max-model-len)"
             : ", answer cut at --max-tokens";
}

Status ask(AskOptions options, Interrupt& interrupt) {
  Status status = separate_question(options);
  if (!status.ok()) return status;
  std::vector<Document> documents;
  for (const std::string& path : options.documents) {
    Expected<Document> document = load_document(path);
    if (!document) return document.status();
    documents.push_back(*std::move(document));
  }
  Expected<Engine> engine = open_engine(options.engine, interrupt);
  if (!engine) return engine.status();
  Expected<std::vector<Segment>> segments = engine->render_rag(documents, options.question);
  if (!segments) return segments.status();
  Request request;
  request.segments = *std::move(segments);
  request.sampling = options.sampling;
  Expected<Completion> completion = complete(*engine, request, print);
  if (!completion) return completion.status();
  status = print("\n");
  if (!status.ok()) return status;
  const Usage& usage = completion->usage;
  return write_all(STDERR_FILENO,
                   fmt::format("time to first token {:.1f} ms, {} of {} prompt tokens cached{}\n",
                               usage.ttft_ms, usage.cached_tokens, usage.prompt_tokens,
                               cut_text(*completion, options.sampling)),
                   "standard error");
}

}  // namespace

void add_ask_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("ask", "Answer one question from text files");
  auto options = std::make_shared<AskOptions>();
  command
      ->add_option(
          "--document", options->documents,
          "text files (UTF-8); a file's name without its extension is the document's title "
          "(several, or repeated)")
      ->type_name("FILE")
      ->required();
  command->add_option("QUESTION", options->question, "the question, in quotes");
  add_engine_options(*command, options->engine, EngineOptionSet::kServing);
  add_sampling_options(*command, options->sampling);
  command->footer(
      "The answer goes to standard output as it is made; then one line on standard error tells the "
      "time to the first token and the cached tokens.");
  command->callback([options, &action] {
    action = [options](Interrupt& interrupt) { return ask(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
