#include "verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/answer_metrics.h"
#include "shown_text.h"

namespace anyslot::bench {

namespace {

constexpr double kAlike = 1.15;  // ratios below are noise

std::string speed_sentence(const std::vector<RaceRun>& runs) {
  if (!runs[0].first_token_ms || !runs[1].first_token_ms) {
    return "An answer without a token cannot be raced.";
  }
  const bool first_is_quick = *runs[0].first_token_ms <= *runs[1].first_token_ms;
  const RaceRun& quick = runs[first_is_quick ? 0 : 1];
  const RaceRun& slow = runs[first_is_quick ? 1 : 0];
  const std::string soon = duration_text(*quick.first_token_ms);
  const std::string late = duration_text(*slow.first_token_ms);
  if (quick.name == slow.name && quick.reuse != LaneReuse::kUnknown) {
    return fmt::format("The same method twice, {} and {}: the difference is noise.", soon, late);
  }
  const double ratio = *slow.first_token_ms / *quick.first_token_ms;
  if (ratio < kAlike) {
    return fmt::format("About as soon as each other: {} after {}, {} after {}.", quick.name, soon,
                       slow.name, late);
  }
  return fmt::format("{} began to answer {} times sooner: after {}, {} after {}.", quick.name,
                     times_text(ratio), soon, slow.name, late);
}

/// The letters of documents of which some tokens, or none, were cached.
std::string letters(const RaceRun& run, bool cached) {
  std::string text;
  for (const RunDocument& document : run.documents) {
    if ((document.cached > 0) != cached) continue;
    text += (text.empty() ? "" : " ") + letter_of(document.number);
  }
  return text;
}

std::string documents_sentence(const RaceRun& run) {
  const std::string computed = letters(run, false);
  if (computed.empty()) {
    return fmt::format("{} found every document in its cache: its copy fits any slot.", run.name);
  }
  if (letters(run, true).empty()) {
    return fmt::format("{} had to compute every document.", run.name);
  }
  return fmt::format("{} computed only what was new to it: {}.", run.name, computed);
}

std::string prefix_sentence(const RaceRun& run) {
  if (run.cached_document_tokens() >= run.document_tokens()) {
    return fmt::format(
        "{} found every document in its cache: the prompt begins like an earlier one.", run.name);
  }
  const std::string reused = letters(run, true);
  if (reused.empty()) {
    return fmt::format(
        "{} had to compute every document: the prompt begins otherwise than earlier ones.",
        run.name);
  }
  return fmt::format(
      "{} reused {}, as far as the prompt begins like an earlier one, and computed the rest.",
      run.name, reused);
}

std::string unknown_sentence(const RaceRun& run) {
  if (!run.cached_tokens || run.prompt_tokens <= 0) {
    return fmt::format("{} does not tell what it had in its cache.", run.name);
  }
  return fmt::format("{} had {} of the {} tokens of the prompt in its cache.", run.name,
                     count_text(*run.cached_tokens), count_text(run.prompt_tokens));
}

std::string reuse_sentence(const RaceRun& run) {
  if (run.reuse == LaneReuse::kNothing) {
    return fmt::format("{} computes every document every time.", run.name);
  }
  if (run.reuse == LaneReuse::kUnknown || run.documents.empty()) return unknown_sentence(run);
  return run.reuse == LaneReuse::kDocuments ? documents_sentence(run) : prefix_sentence(run);
}

std::vector<std::string> reuse_sentences(const std::vector<RaceRun>& runs) {
  const auto told_cold = [](const RaceRun& run) {
    return run.cached_tokens && run.cached_document_tokens() == 0 && !run.documents.empty();
  };
  if (std::ranges::all_of(runs, told_cold)) {
    return {"Neither had anything cached, so both computed every document."};
  }
  std::vector<std::string> sentences;
  for (const RaceRun& run : runs) {
    std::string sentence = reuse_sentence(run);
    if (sentences.empty() || sentences.back() != sentence) sentences.push_back(std::move(sentence));
  }
  return sentences;
}

std::string trimmed(const std::string& text) {
  constexpr const char* kBlanks = " \t\r\n";
  const size_t begin = text.find_first_not_of(kBlanks);
  if (begin == std::string::npos) return "";
  return text.substr(begin, text.find_last_not_of(kBlanks) + 1 - begin);
}

std::string answer_sentence(const Race& race) {
  const std::string answers[] = {race.runs[0].answer(), race.runs[1].answer()};
  const auto is_right = [&](const std::string& answer) {
    return cli::score_answer(answer, race.plan.answers).exact_match;
  };
  const bool known = !race.plan.answers.empty();
  if (trimmed(answers[0]) == trimmed(answers[1])) {
    if (!known) return "Both gave the same answer.";
    return is_right(answers[0]) ? "Both gave the same answer, the right one."
                                : "Both gave the same answer, but not the expected one.";
  }
  if (!known) return "The answers differ.";
  const bool right[] = {is_right(answers[0]), is_right(answers[1])};
  if (right[0] == right[1]) {
    return right[0] ? "The answers differ in form; both are right."
                    : "The answers differ, and neither is the expected one.";
  }
  return fmt::format("The answers differ: that of {} is the right one.",
                     race.runs[right[0] ? 0 : 1].name);
}

}  // namespace

std::vector<std::string> verdict_of(const Race& race) {
  std::vector<std::string> sentences = {speed_sentence(race.runs)};
  for (std::string& sentence : reuse_sentences(race.runs)) sentences.push_back(std::move(sentence));
  sentences.push_back(answer_sentence(race));
  return sentences;
}

std::string reuse_text(const RaceRun& run) {
  if (!run.documents.empty()) {
    return fmt::format("{} of {} document tokens cached", count_text(run.cached_document_tokens()),
                       count_text(run.document_tokens()));
  }
  if (!run.cached_tokens || run.prompt_tokens <= 0) return "does not tell what was cached";
  return fmt::format("{} of {} prompt tokens cached", count_text(*run.cached_tokens),
                     count_text(run.prompt_tokens));
}

std::string start_text(const RacePlan& plan) {
  const auto count = static_cast<int64_t>(plan.documents.size());
  if (plan.cold)
    return fmt::format("{}; nothing was read before the race.", plural_text(count, "document"));
  if (count == 1) return "1 document, which both lanes have read.";
  return fmt::format("{} in a new order (seed {}); both lanes have read them in another one.",
                     plural_text(count, "document"), plan.seed);
}

}  // namespace anyslot::bench
