#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/block.h"

namespace anyslot {

/// How the keys of a span are stored: key i at angle first_angle + i, or not turned at all.
enum class KeyForm : uint8_t { kTurned, kRaw };

/// The KV of consecutive tokens: token i lives in blocks[i / kBlockSize], slot i % kBlockSize.
struct SpanView {
  std::span<const BlockId> blocks;  // owned by the scheduler or the cache; valid during the step
  int64_t num_tokens = 0;           // written before this step or in it
  int64_t first_angle = 0;
  KeyForm key_form = KeyForm::kTurned;
};

/// A span and the position `start` of its token 0 in one request. Only tokens [begin, end) take
/// part. Key i is visible to a query at p iff i <= p - start, and, under a window, i > p - start -
/// window. Turned keys meet Q turned by p - start + first_angle; raw keys are turned to start + i
/// and meet Q turned by p.
struct Placement {
  SpanView span;
  int64_t begin = 0;
  int64_t end = 0;
  int64_t start = 0;
};

/// One query token of the step.
struct Row {
  int32_t token_id = 0;
  int64_t position = 0;  // of the token in its prompt (in its document, when that is encoded alone)
  int64_t write_slot = 0;   // block * kBlockSize + slot: where its K and V go
  int64_t write_angle = 0;  // K is turned by this before it is stored; 0 for raw keys
  int32_t sequence = 0;     // index into StepPlan::sequences
  bool sample = false;      // its logits are wanted
};

/// What the rows [row_begin, row_end) see: the placements [placement_begin, placement_end), in
/// ascending order of start.
struct SequencePlan {
  int32_t row_begin = 0;
  int32_t row_end = 0;
  int32_t placement_begin = 0;
  int32_t placement_end = 0;
};

/// Copy the first num_tokens slots of a block, in every layer, and turn its keys by turn_by.
struct BlockCopy {
  BlockId src = 0;
  BlockId dst = 0;
  int32_t num_tokens = 0;
  int64_t turn_by = 0;
};

/// One forward pass: first the copies, then, layer by layer, all rows write K and V and attend.
/// Since a layer's writes come before its reads, a row may see rows of the same step.
struct StepPlan {
  std::vector<Row> rows;  // grouped by sequence
  std::vector<SequencePlan> sequences;
  std::vector<Placement> placements;
  std::vector<BlockCopy> copies;
  /// Distinct KV tokens that attention reads, per layer: the mean, where their windows differ.
  int64_t kv_tokens_read = 0;
  bool share_rows = true;  // off: each request reads for itself, for comparison
};

}  // namespace anyslot
