#include "workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "workload_parts.h"

namespace anyslot::bench {

namespace {

constexpr uint64_t kRowStream = 5;
constexpr uint64_t kOrderStream = 6;

constexpr std::pair<WorkloadKind, std::string_view> kNames[] = {
    {WorkloadKind::kRandom, "random"},          {WorkloadKind::kRag, "ragqa"},
    {WorkloadKind::kLongBench, "longbench"},    {WorkloadKind::kChatRag, "chatrag"},
    {WorkloadKind::kMooncake, "mooncake"},      {WorkloadKind::kLongDocument, "long-document"},
    {WorkloadKind::kMultiRound, "multi-round"},
};

Expected<Requests> read_rows(const WorkloadOptions& options) {
  switch (options.kind) {
    case WorkloadKind::kLongBench:
      return read_long_bench(options);
    case WorkloadKind::kChatRag:
      return read_chat_rag(options);
    default:
      return read_rag_rows(options);
  }
}

/// The rows that are asked: all in the file's order, or popular ones more often.
Requests choose_rows(Requests rows, const WorkloadOptions& options, int num_prompts,
                     uint64_t seed) {
  const auto count = static_cast<size_t>(num_prompts);
  if (options.choice == DocumentChoice::kUniform) {
    if (rows.size() > count) rows.resize(count);
    return rows;
  }
  RandomStream random(seed, kRowStream);
  random.shuffle(rows);  // which row is popular is by chance
  const RankedChoice choice(rows.size(), options.zipf);
  Requests chosen;
  while (chosen.size() < count) chosen.push_back(rows[choice.draw(random)]);
  return chosen;
}

Expected<Requests> make_from_rows(const WorkloadOptions& options, int num_prompts, uint64_t seed,
                                  const TextTraits& traits) {
  if (!traits.takes_text) {
    return invalid_argument(fmt::format("workload {} needs a model with a tokenizer; use random",
                                        workload_name(options.kind)));
  }
  Expected<Requests> rows = read_rows(options);
  if (!rows) return rows.status();
  Requests requests = choose_rows(*std::move(rows), options, num_prompts, seed);
  RandomStream random(seed, kOrderStream);
  for (WorkloadRequest& request : requests) {
    if (options.order == DocumentOrder::kNew) random.shuffle(request.documents);
    if (options.output_len > 0) request.max_tokens = options.output_len;
  }
  return requests;
}

Status check(const WorkloadOptions& options, int num_prompts) {
  if (num_prompts < 1) return invalid_argument("a workload needs at least one prompt");
  const bool reads_file = options.kind != WorkloadKind::kRandom &&
                          options.kind != WorkloadKind::kLongDocument &&
                          options.kind != WorkloadKind::kMultiRound;
  if (reads_file && options.dataset_path.empty()) {
    return invalid_argument(fmt::format("workload {} reads a file; name it with --dataset-path",
                                        workload_name(options.kind)));
  }
  if (options.output_len < (reads_file ? 0 : 1) || options.document_len < 1 ||
      options.question_len < 1 || options.num_documents < 1 || options.documents_per_prompt < 0 ||
      options.rounds < 1 || options.trace_block_len < 1) {
    return invalid_argument(
        "numbers and lengths of documents, questions and answers must be at "
        "least 1");
  }
  if (options.random_range_ratio < 0 || options.random_range_ratio >= 1) {
    return invalid_argument("the range ratio of lengths must be at least 0 and below 1");
  }
  if (options.zipf < 0) return invalid_argument("the exponent of Zipf's law must be at least 0");
  return {};
}

}  // namespace

std::string_view workload_name(WorkloadKind kind) {
  for (const auto& [value, name] : kNames) {
    if (value == kind) return name;
  }
  return "";
}

Expected<WorkloadKind> parse_workload(std::string_view name) {
  std::string names;
  for (const auto& [value, known] : kNames) {
    if (known == name) return value;
    names += (names.empty() ? "" : ", ") + std::string(known);
  }
  return invalid_argument(fmt::format("\"{}\" is not a workload; use one of {}", name, names));
}

Expected<std::vector<WorkloadRequest>> make_workload(const WorkloadOptions& options,
                                                     int num_prompts, uint64_t seed,
                                                     const TextTraits& traits) {
  if (Status status = check(options, num_prompts); !status.ok()) return status;
  switch (options.kind) {
    case WorkloadKind::kRandom:
      return make_random(options, num_prompts, seed, traits);
    case WorkloadKind::kLongDocument:
      return make_long_document(options, num_prompts, seed, traits);
    case WorkloadKind::kMultiRound:
      return make_multi_round(options, num_prompts, seed, traits);
    case WorkloadKind::kMooncake:
      return make_mooncake(options, num_prompts, seed, traits);
    default:
      return make_from_rows(options, num_prompts, seed, traits);
  }
}

}  // namespace anyslot::bench
