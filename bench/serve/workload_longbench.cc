#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>

#include "workload_parts.h"

namespace anyslot::bench {

namespace {

/// A data set of LongBench (arXiv 2308.14508): its measure, the tokens of an answer, the word that
/// begins a part of its context when it has several, and what is asked besides the row's input.
struct LongBenchSet {
  std::string_view name;
  AnswerMetric metric;
  int max_tokens;
  std::string_view part;  // "Passage": parts begin with "Passage 1:"
  std::string_view instruction;
};

constexpr std::string_view kAsk =
    "Answer the question from the documents. Give the answer only, without explanation.";
constexpr std::string_view kSummarize = "Summarize the documents.";

constexpr auto kSets = std::to_array<LongBenchSet>({
    {"narrativeqa", AnswerMetric::kF1, 128, "", kAsk},
    {"qasper", AnswerMetric::kF1, 128, "", kAsk},
    {"multifieldqa_en", AnswerMetric::kF1, 64, "", kAsk},
    {"hotpotqa", AnswerMetric::kF1, 32, "Passage", kAsk},
    {"2wikimqa", AnswerMetric::kF1, 32, "Passage", kAsk},
    {"musique", AnswerMetric::kF1, 32, "Passage", kAsk},
    {"gov_report", AnswerMetric::kRougeL, 512, "", kSummarize},
    {"qmsum", AnswerMetric::kRougeL, 512, "", "Answer the query from the transcript."},
    {"multi_news", AnswerMetric::kRougeL, 512, "Passage", kSummarize},
    {"trec", AnswerMetric::kClassification, 64, "", "Name the type of the question, as above."},
    {"triviaqa", AnswerMetric::kF1, 32, "", "Answer the question, as above."},
    {"samsum", AnswerMetric::kRougeL, 128, "", "Summarize the dialogue, as above."},
    {"passage_count", AnswerMetric::kCount, 32, "Paragraph",
     "How many different paragraphs are there? Give the number only."},
    {"passage_retrieval_en", AnswerMetric::kRetrieval, 32, "Paragraph",
     "Which paragraph is the abstract from? Answer \"Paragraph\" and its number."},
    {"lcc", AnswerMetric::kCodeSimilarity, 64, "", "Write the next line of the code."},
    {"repobench-p", AnswerMetric::kCodeSimilarity, 64, "", "Write the next line of the code."},
});

const LongBenchSet* find_set(std::string name) {
  if (name.ends_with("_e")) name.resize(name.size() - 2);
  const auto* found = std::ranges::find(kSets, name, &LongBenchSet::name);
  return found == kSets.end() ? nullptr : found;
}

/// Where a part begins: at the text's begin or after a newline, "Passage 12:".
bool begins_part(std::string_view text, size_t at, std::string_view word) {
  if (at > 0 && text[at - 1] != '\n') return false;
  text.remove_prefix(at);
  if (!text.starts_with(word)) return false;
  text.remove_prefix(word.size());
  if (!text.starts_with(' ')) return false;
  text.remove_prefix(1);
  const size_t end = text.find_first_not_of("0123456789");
  return end != 0 && end != std::string_view::npos && text[end] == ':';
}

std::vector<WorkloadDocument> parts_of(const std::string& context, std::string_view word) {
  std::vector<size_t> begins;
  if (!word.empty()) {
    for (size_t at = context.find(word); at != std::string::npos; at = context.find(word, at + 1)) {
      if (begins_part(context, at, word)) begins.push_back(at);
    }
  }
  if (begins.empty() || begins.front() != 0) begins.insert(begins.begin(), 0);
  begins.push_back(context.size());
  std::vector<WorkloadDocument> documents;
  for (size_t i = 0; i + 1 < begins.size(); ++i) {
    std::string text = context.substr(begins[i], begins[i + 1] - begins[i]);
    if (text.find_first_not_of(" \t\r\n") == std::string::npos) continue;
    if (text.back() != '\n') text += '\n';
    documents.push_back({std::nullopt, std::move(text), "", {}});
  }
  return documents;
}

std::string question_of(const LongBenchSet& set, const std::string& input) {
  if (set.metric == AnswerMetric::kCodeSimilarity) {
    return input.empty() ? std::string(set.instruction)
                         : fmt::format("{}\n{}", input, set.instruction);
  }
  return input.empty() ? std::string(set.instruction)
                       : fmt::format("{}\n\n{}", set.instruction, input);
}

}  // namespace

Expected<Requests> read_long_bench(const WorkloadOptions& options) {
  const Expected<std::vector<JsonRow>> rows = read_json_rows(options.dataset_path);
  if (!rows) return rows.status();
  Requests requests;
  for (const auto& [line, object] : *rows) {
    const std::string context = text_field(object, "context");
    if (context.empty()) return row_error(options.dataset_path, line, "the row has no \"context\"");
    std::string name = text_field(object, "dataset");
    if (name.empty()) name = options.dataset_name;
    const LongBenchSet* set = find_set(name);
    if (set == nullptr) {
      return row_error(options.dataset_path, line,
                       fmt::format("\"{}\" is not an English data set of LongBench (the Chinese "
                                   "ones need a word segmenter); name it with --dataset-subset",
                                   name));
    }
    WorkloadRequest request;
    request.id = text_field(object, "_id");
    request.documents = parts_of(context, set->part);
    request.messages.push_back(
        {ChatRole::kUser, question_of(*set, text_field(object, "input")), {}});
    request.max_tokens = set->max_tokens;
    request.answers = texts_field(object, "answers");
    request.all_classes = texts_field(object, "all_classes");
    request.metric = set->metric;
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace anyslot::bench
