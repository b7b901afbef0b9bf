#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>

#include "bundled_data.h"
#include "command.h"
#include "input_rows.h"
#include "method_comparison.h"
#include "open_engine.h"
#include "options.h"
#include "output_file.h"
#include "progress.h"
#include "table.h"
#include "text_file.h"
#include "three_ways.h"

namespace anyslot::cli {
namespace {

struct ValidateOptions {
  EngineConfig engine;
  int max_tokens = 32;
  std::string input;  // empty: the bundled questions
};

Expected<std::vector<InputRow>> load_cases(const ValidateOptions& options) {
  std::string path = options.input;
  if (path.empty()) {
    Expected<BundledData> bundled = find_bundled_data();
    if (!bundled) return bundled.status();
    path = bundled->questions;
  }
  Expected<std::vector<InputRow>> rows = load_input_rows(path);
  if (!rows) return rows;
  for (const InputRow& row : *rows) {
    if (row.segments.empty()) continue;
    return invalid_argument(fmt::format(
        "{}:{}: validate needs rows with \"documents\" and \"question\", not \"segments\"",
        input_name(path), row.line));
  }
  return rows;
}

/// What the whole of the cases showed.
struct Findings {
  Table answers{{"case", "question", "inlined", "documents", "reordered"}};
  std::vector<std::string> problems;
  std::vector<std::string> notes;
  MethodComparison comparison;
};

std::string found_text(const std::optional<bool>& found) {
  if (!found) return "-";
  return *found ? "right" : "wrong";
}

void add_answers(const InputRow& row, const ThreeWays& ways, bool block_trained,
                 Findings& findings) {
  const std::string id = row.id.is_string() ? row.id.get<std::string>() : row.id.dump();
  findings.answers.add_row({shortened(id, 16), shortened(row.question, 60),
                            found_text(ways.inlined.found), found_text(ways.documents.found),
                            found_text(ways.reordered.found)});
  for (const auto& [name, way] :
       {std::pair{"documents", &ways.documents}, std::pair{"reordered", &ways.reordered}}) {
    if (!ways.inlined.found.value_or(false) || way->found.value_or(true)) continue;
    std::string problem = fmt::format(
        "case {}: a fact is lost between inlined and {}: inlined the answer is \"{}\", then \"{}\"",
        id, name, shortened(ways.inlined.text, 60), shortened(way->text, 60));
    (block_trained ? findings.problems : findings.notes).push_back(std::move(problem));
  }
}

Status examine(Engine& engine, const InputRow& row, const ValidateOptions& options,
               Findings& findings) {
  SamplingParams sampling;
  sampling.max_tokens = row.max_tokens.value_or(options.max_tokens);
  Expected<ThreeWays> ways = answer_three_ways(engine, row, sampling);
  if (!ways) return ways.status();
  add_answers(row, *ways, engine.model().block_trained, findings);
  const std::string id = row.id.is_string() ? row.id.get<std::string>() : row.id.dump();
  Status status = findings.comparison.add(engine, row.documents, row.question, sampling.max_tokens,
                                          "case " + id);
  if (!status.ok()) return status;
  return findings.comparison.add(engine, reordered_documents(row.documents), row.question,
                                 sampling.max_tokens, "case " + id + ", reordered");
}

std::string pairs_table(const MethodComparison& comparison) {
  Table table({"pair", ">largest difference", ">limit", "verdict", "where"});
  for (const PairDifference& pair : comparison.pairs()) {
    table.add_row({pair.name(), fmt::format("{:.1e}", pair.largest),
                   fmt::format("{:.0e}", kLogitTolerance), pair.agrees() ? "same" : "DIFFER",
                   pair.where});
  }
  return table.text();
}

void add_pair(const PairDifference& pair, Findings& findings) {
  if (!pair.within_rounding()) {
    findings.problems.push_back(
        fmt::format("{}: the logits of {} differ by {:.1e} of the largest, more than {:.0e}",
                    pair.where, pair.name(), pair.largest, kLogitTolerance));
  } else if (!pair.agrees()) {
    findings.problems.push_back(
        fmt::format("{}: {} answer differently", pair.unlike_answers, pair.name()));
  }
  for (const std::string& near_tie : pair.near_ties) {
    findings.notes.push_back(
        fmt::format("{}: the answers of {} part at a near tie, where the two best logits lie "
                    "within {:.0e} of the largest; not counted as a difference",
                    near_tie, pair.name(), kLogitTolerance));
  }
}

Status report(Findings& findings, size_t num_cases) {
  for (const PairDifference& pair : findings.comparison.pairs()) add_pair(pair, findings);
  std::string text =
      findings.answers.text() +
      "\nLogits of the question, largest difference as a share of the largest logit:\n\n" +
      pairs_table(findings.comparison) + "\n";
  for (const std::string& note : findings.notes) text += "note: " + note + "\n";
  for (const std::string& problem : findings.problems) text += "PROBLEM: " + problem + "\n";
  if (findings.problems.empty()) {
    text += fmt::format("valid: {} cases, no fact lost, methods agree\n", num_cases);
  }
  Status status = print(text);
  if (!status.ok() || findings.problems.empty()) return status;
  return failed_precondition(
      fmt::format("validation failed with {} problem{}: {}", findings.problems.size(),
                  findings.problems.size() == 1 ? "" : "s, the first", findings.problems.front()));
}

Status validate(const ValidateOptions& options, Interrupt& interrupt) {
  Expected<std::vector<InputRow>> rows = load_cases(options);
  if (!rows) return rows.status();
  Expected<Engine> engine = open_engine(options.engine, interrupt);
  if (!engine) return engine.status();
  if (!engine->model().has_rag_template) {
    return failed_precondition(
        fmt::format("{} has no rag_template.json, so questions cannot be put to it; "
                    "docs/usage.md tells how to write one",
                    options.engine.model_path));
  }
  Findings findings;
  {
    ProgressBar progress("validating", static_cast<int64_t>(rows->size()));
    for (size_t r = 0; r < rows->size(); ++r) {
      Status status = examine(*engine, (*rows)[r], options, findings);
      if (!status.ok()) {
        return {status.code(), fmt::format("case {}: {}", (*rows)[r].id.dump(), status.message())};
      }
      progress.update(static_cast<int64_t>(r) + 1);
    }
  }
  Status status = engine->check_integrity();
  if (!status.ok()) return status;
  return report(findings, rows->size());
}

}  // namespace

void add_validate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "validate", "Check that a model keeps its facts and that the methods agree");
  auto options = std::make_shared<ValidateOptions>();
  add_model_option(*command, options->engine);
  command
      ->add_option(
          "--input", options->input,
          "questions with \"documents\" and \"answers\", rows as of `anyslot run` (default: "
          "the bundled ones)")
      ->type_name("FILE");
  command
      ->add_option("--max-tokens", options->max_tokens,
                   "tokens to generate per answer, at most (default: 32)")
      ->type_name("N")
      ->check(at_least(1));
  add_engine_options(*command, options->engine, EngineOptionSet::kMeasuring);
  command->footer(
      "Everything runs in float32. Each question is answered with its documents inlined as text, "
      "as\n"
      "documents, and as documents in reverse order; lazy, block and mepic must give the same "
      "logits,\n"
      "and so must prefix and full. Exit code 1 names the pair and the case that failed.");
  command->callback([options, &action] {
    options->engine.dtype = ComputeType::kFloat32;
    action = [options](Interrupt& interrupt) { return validate(*options, interrupt); };
  });
}

}  // namespace anyslot::cli
