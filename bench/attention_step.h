#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "anyslot/config.h"
#include "anyslot/status.h"
#include "plan/step_plan.h"

namespace anyslot::bench {

/// Which documents the requests of a batch have.
enum class Sharing : uint8_t {
  kOwn,     // each has documents of its own
  kShared,  // all have the same ones, each in another order; rows of several requests read together
  kUnshared  // the same ones, but each request reads for itself
};

std::string_view sharing_name(Sharing sharing);
Expected<Sharing> parse_sharing(std::string_view name);

/// A step of `batch` requests, each computing the `query_tokens` tokens of a text behind `context`
/// tokens of documents.
struct AttentionCase {
  Method method = Method::kLazy;  // lazy, block or mepic
  Sharing sharing = Sharing::kOwn;
  int64_t query_tokens = 1;
  int64_t context = 0;
  int64_t batch = 1;
  int64_t document_tokens = 1024;  // the last document may be shorter
};

/// Blocks that the case's KV takes. Under method block each request has copies of its own.
int64_t blocks_of(const AttentionCase& attention_case);

/// The step plan of a case, with the blocks it refers to.
class AttentionStep {
 public:
  /// Takes the blocks from the end of `pool`, which must hold at least blocks_of(attention_case).
  AttentionStep(const AttentionCase& attention_case, std::vector<BlockId>& pool);
  AttentionStep(AttentionStep&&) = default;

  const StepPlan& plan() const { return plan_; }

 private:
  SpanView make_span(int64_t num_tokens, std::vector<BlockId>& pool);
  void add_request(const AttentionCase& attention_case, int64_t request,
                   const std::vector<SpanView>& documents, std::vector<BlockId>& pool);

  StepPlan plan_;
  std::deque<std::vector<BlockId>> block_lists_;
};

/// (row, key) pairs that the step's attention scores, per head.
int64_t count_visible_pairs(const StepPlan& plan);
/// KV tokens in the placements of all requests, each block counted once.
int64_t count_distinct_tokens(const StepPlan& plan);
/// KV tokens that the attention plan of the step reads.
int64_t count_tokens_read(const StepPlan& plan);

}  // namespace anyslot::bench
