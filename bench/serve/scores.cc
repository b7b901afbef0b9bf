#include "scores.h"

#include <algorithm>
#include <cctype>
#include <span>

#include "cli/answer_metrics.h"

namespace anyslot::bench {

namespace {

std::vector<std::string_view> words_of(std::string_view text) {
  constexpr std::string_view kSpaces = " \t\r\n\v\f";
  std::vector<std::string_view> words;
  while (true) {
    const size_t begin = text.find_first_not_of(kSpaces);
    if (begin == std::string_view::npos) return words;
    text.remove_prefix(begin);
    const size_t end = std::min(text.find_first_of(kSpaces), text.size());
    words.push_back(text.substr(0, end));
    text.remove_prefix(end);
  }
}

/// The length of the longest common subsequence.
template <typename Sequence>
int64_t common_length(const Sequence& a, const Sequence& b) {
  std::vector<int64_t> row(b.size() + 1, 0);
  for (const auto& x : a) {
    int64_t diagonal = 0;
    for (size_t j = 0; j < b.size(); ++j) {
      const int64_t above = row[j + 1];
      row[j + 1] = x == b[j] ? diagonal + 1 : std::max(above, row[j]);
      diagonal = above;
    }
  }
  return row.back();
}

/// Twice the common length over both lengths: F1 of sequences.
template <typename Sequence>
double likeness(const Sequence& a, const Sequence& b) {
  if (a.empty() || b.empty()) return a.empty() && b.empty() ? 1 : 0;
  return 2.0 * static_cast<double>(common_length(a, b)) / static_cast<double>(a.size() + b.size());
}

std::string_view first_line(std::string_view text) {
  text.remove_prefix(std::min(text.find_first_not_of('\n'), text.size()));
  return text.substr(0, text.find('\n'));
}

std::string_view first_code_line(std::string_view text) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const bool code = !line.empty() && line.find_first_of("`#") == std::string_view::npos &&
                      line.find("//") == std::string_view::npos;
    if (code) return line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return {};
}

std::vector<std::string> numbers_in(std::string_view text) {
  std::vector<std::string> numbers;
  bool in_number = false;
  for (const char c : text) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) numbers.emplace_back();
    if (digit) numbers.back() += c;
    in_number = digit;
  }
  return numbers;
}

/// The share of the numbers in `output` that are `right`.
double share_of(std::string_view output, std::string_view right) {
  const std::vector<std::string> numbers = numbers_in(output);
  if (numbers.empty()) return 0;
  return static_cast<double>(std::ranges::count(numbers, right)) /
         static_cast<double>(numbers.size());
}

/// Of an answer "Paragraph 12" its 12.
double retrieval_score(std::string_view output, std::string_view answer) {
  const std::vector<std::string> right = numbers_in(answer);
  return right.empty() ? 0 : share_of(output, right.front());
}

/// One over the classes that the output names, if the right one is among them. A class whose name
/// is a part of the right one's does not count.
double classification_score(std::string_view output, std::string_view answer,
                            const std::vector<std::string>& all_classes) {
  int named = 0;
  bool right = false;
  for (const std::string& name : all_classes) {
    if (output.find(name) == std::string_view::npos) continue;
    const bool is_answer = name == answer;
    if (!is_answer && answer.find(name) != std::string_view::npos) continue;
    right |= is_answer;
    ++named;
  }
  return right ? 1.0 / named : 0;
}

double own_score(std::string_view output, const std::string& answer, AnswerMetric metric,
                 const AnswerScores& common, const std::vector<std::string>& all_classes) {
  switch (metric) {
    case AnswerMetric::kExactMatch:
      return common.exact_match;
    case AnswerMetric::kContains:
      return common.contains_match;
    case AnswerMetric::kF1:
      return common.f1;
    case AnswerMetric::kRougeL:
      return common.rouge_l;
    case AnswerMetric::kClassification:
      return classification_score(first_line(output), answer, all_classes);
    case AnswerMetric::kRetrieval:
      return retrieval_score(output, answer);
    case AnswerMetric::kCount:
      return share_of(output, answer);
    case AnswerMetric::kCodeSimilarity:
      return likeness(first_code_line(output), std::string_view(answer));
  }
  return 0;
}

}  // namespace

std::string_view answer_metric_name(AnswerMetric metric) {
  switch (metric) {
    case AnswerMetric::kExactMatch:
      return "exact_match";
    case AnswerMetric::kContains:
      return "contains_match";
    case AnswerMetric::kF1:
      return "f1";
    case AnswerMetric::kRougeL:
      return "rouge_l";
    case AnswerMetric::kClassification:
      return "classification";
    case AnswerMetric::kRetrieval:
      return "retrieval";
    case AnswerMetric::kCount:
      return "count";
    case AnswerMetric::kCodeSimilarity:
      return "code_similarity";
  }
  return "";
}

double rouge_l(std::string_view output, std::string_view answer) {
  return likeness(words_of(output), words_of(answer));
}

AnswerScores score_output(std::string_view output, const std::vector<std::string>& answers,
                          AnswerMetric metric, const std::vector<std::string>& all_classes) {
  const cli::AnswerScore best = cli::score_answer(output, answers);
  AnswerScores scores;
  scores.exact_match = best.exact_match ? 1 : 0;
  scores.contains_match = best.contains_match ? 1 : 0;
  scores.f1 = best.f1;
  for (const std::string& answer : answers) {
    scores.rouge_l = std::max(scores.rouge_l, rouge_l(output, answer));
  }
  for (const std::string& answer : answers) {
    scores.score = std::max(scores.score, own_score(output, answer, metric, scores, all_classes));
  }
  return scores;
}

}  // namespace anyslot::bench
