#include "attention_step.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "backend/attention_plan.h"

namespace anyslot::bench {

namespace {

constexpr std::pair<Sharing, std::string_view> kSharingNames[] = {
    {Sharing::kOwn, "own"}, {Sharing::kShared, "shared"}, {Sharing::kUnshared, "unshared"}};

bool has_own_documents(const AttentionCase& attention_case) {
  return attention_case.sharing == Sharing::kOwn || attention_case.method == Method::kBlock;
}

std::vector<int64_t> document_lengths(const AttentionCase& attention_case) {
  std::vector<int64_t> lengths;
  for (int64_t left = attention_case.context; left > 0; left -= lengths.back()) {
    lengths.push_back(std::min(left, attention_case.document_tokens));
  }
  return lengths;
}

}  // namespace

std::string_view sharing_name(Sharing sharing) {
  for (const auto& [value, name] : kSharingNames) {
    if (value == sharing) return name;
  }
  return "?";
}

Expected<Sharing> parse_sharing(std::string_view name) {
  for (const auto& [value, known] : kSharingNames) {
    if (known == name) return value;
  }
  return invalid_argument("unknown sharing '" + std::string(name) +
                          "'; use own, shared or unshared");
}

int64_t blocks_of(const AttentionCase& attention_case) {
  int64_t document_blocks = 0;
  for (const int64_t length : document_lengths(attention_case)) {
    document_blocks += blocks_for(length);
  }
  if (has_own_documents(attention_case)) document_blocks *= attention_case.batch;
  return document_blocks + attention_case.batch * blocks_for(attention_case.query_tokens);
}

AttentionStep::AttentionStep(const AttentionCase& attention_case, std::vector<BlockId>& pool) {
  std::vector<SpanView> documents;
  for (int64_t request = 0; request < attention_case.batch; ++request) {
    if (request == 0 || has_own_documents(attention_case)) {
      documents.clear();
      for (const int64_t length : document_lengths(attention_case)) {
        documents.push_back(make_span(length, pool));
      }
    }
    add_request(attention_case, request, documents, pool);
  }
  plan_.share_rows = attention_case.sharing != Sharing::kUnshared;
  plan_.kv_tokens_read = count_tokens_read(plan_);
}

SpanView AttentionStep::make_span(int64_t num_tokens, std::vector<BlockId>& pool) {
  std::vector<BlockId> blocks;
  for (int64_t b = 0; b < blocks_for(num_tokens); ++b) {
    blocks.push_back(pool.back());
    pool.pop_back();
  }
  block_lists_.push_back(std::move(blocks));
  return {block_lists_.back(), num_tokens, 0, KeyForm::kTurned};
}

void AttentionStep::add_request(const AttentionCase& attention_case, int64_t request,
                                const std::vector<SpanView>& documents,
                                std::vector<BlockId>& pool) {
  const KeyForm form = attention_case.method == Method::kMepic ? KeyForm::kRaw : KeyForm::kTurned;
  SequencePlan sequence;
  sequence.row_begin = static_cast<int32_t>(plan_.rows.size());
  sequence.placement_begin = static_cast<int32_t>(plan_.placements.size());
  int64_t start = 0;
  for (size_t d = 0; d < documents.size(); ++d) {
    SpanView span = documents[(d + static_cast<size_t>(request)) % documents.size()];
    span.key_form = form;
    if (attention_case.method == Method::kBlock) span.first_angle = start;
    plan_.placements.push_back({span, 0, span.num_tokens, start});
    start += span.num_tokens;
  }
  const SpanView text = make_span(attention_case.query_tokens, pool);
  plan_.placements.push_back({text, 0, text.num_tokens, start});
  for (int64_t i = 0; i < text.num_tokens; ++i) {
    const int64_t block = text.blocks[static_cast<size_t>(i / kBlockSize)];
    plan_.rows.push_back({.token_id = 0,
                          .position = start + i,
                          .write_slot = block * kBlockSize + i % kBlockSize,
                          .write_angle = i,
                          .sequence = static_cast<int32_t>(request),
                          .sample = i + 1 == text.num_tokens});
  }
  sequence.row_end = static_cast<int32_t>(plan_.rows.size());
  sequence.placement_end = static_cast<int32_t>(plan_.placements.size());
  plan_.sequences.push_back(sequence);
}

int64_t count_visible_pairs(const StepPlan& plan) {
  int64_t pairs = 0;
  for (const Row& row : plan.rows) {
    const SequencePlan& sequence = plan.sequences[static_cast<size_t>(row.sequence)];
    for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
      const Placement& placement = plan.placements[static_cast<size_t>(p)];
      const int64_t end = std::min(placement.end, row.position - placement.start + 1);
      pairs += std::max<int64_t>(0, end - placement.begin);
    }
  }
  return pairs;
}

int64_t count_distinct_tokens(const StepPlan& plan) {
  std::map<BlockId, int64_t> tokens;  // by a span's first block
  for (const Placement& placement : plan.placements) {
    tokens[placement.span.blocks.front()] = placement.end - placement.begin;
  }
  return std::accumulate(tokens.begin(), tokens.end(), int64_t{0},
                         [](int64_t sum, const auto& span) { return sum + span.second; });
}

int64_t count_tokens_read(const StepPlan& plan) {
  std::vector<int32_t> rows(plan.rows.size());
  std::iota(rows.begin(), rows.end(), 0);
  return plan_attention(plan, rows, 0, {}).kv_tokens_read;
}

}  // namespace anyslot::bench
