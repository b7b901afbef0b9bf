#include "sched/step_builder.h"

#include <algorithm>
#include <utility>

#include "plan/visible_tokens.h"

namespace anyslot {

StepBuilder::StepBuilder(int max_batch_tokens, bool ignore_placement_angles,
                         std::span<const int64_t> layer_windows)
    : max_batch_tokens_(max_batch_tokens), ignore_placement_angles_(ignore_placement_angles) {
  for (const int64_t window : layer_windows) {
    const auto known = std::ranges::find(windows_, window, &LayersOfWindow::window);
    if (known == windows_.end()) {
      windows_.push_back({window, 1});
    } else {
      ++known->num_layers;
    }
  }
  if (windows_.empty()) windows_.push_back({0, 1});
}

void StepBuilder::begin(StepPlan& plan) {
  plan_ = &plan;
  plan.rows.clear();
  plan.sequences.clear();
  plan.placements.clear();
  plan.copies.clear();
  plan.kv_tokens_read = 0;
  plan.share_rows = true;
  sample_targets_.clear();
  budget_ = max_batch_tokens_;
}

void StepBuilder::begin_sequence() {
  SequencePlan sequence;
  sequence.row_begin = static_cast<int32_t>(plan_->rows.size());
  sequence.placement_begin = static_cast<int32_t>(plan_->placements.size());
  plan_->sequences.push_back(sequence);
}

void StepBuilder::end_sequence() {
  SequencePlan& sequence = plan_->sequences.back();
  sequence.row_end = static_cast<int32_t>(plan_->rows.size());
  sequence.placement_end = static_cast<int32_t>(plan_->placements.size());
}

void StepBuilder::add_encode_rows(CacheEntry& entry, EncodeJob& job) {
  const int64_t left = static_cast<int64_t>(job.tokens.size()) - job.num_known();
  const int64_t count = std::min(left, budget_);
  if (count == 0) return;
  begin_sequence();
  const auto sequence = static_cast<int32_t>(plan_->sequences.size() - 1);
  for (int64_t i = job.num_known(); i < job.num_known() + count; ++i) {
    Row row;
    row.token_id = job.tokens[static_cast<size_t>(i)];
    row.position = i;
    row.write_slot =
        int64_t{entry.blocks[static_cast<size_t>(i / kBlockSize)]} * kBlockSize + i % kBlockSize;
    row.write_angle = job.key_form == KeyForm::kTurned ? i : 0;
    row.sequence = sequence;
    plan_->rows.push_back(row);
  }
  job.num_scheduled += count;
  budget_ -= count;
  plan_->placements.push_back(
      {SpanView{entry.blocks, job.num_known(), 0, job.key_form}, 0, job.num_known(), 0});
  end_sequence();
}

// Whether everything of `span` that others hold is known by the end of this step. Orders the copy
// of a document that is ready for it.
bool StepBuilder::reach_span(SequenceSpan& span, const EncodeJobs& jobs) {
  if (span.role == SpanRole::kText || span.copied || span.copy_scheduled) return true;
  if (span.entry->state == EntryState::kEncoding) {
    return span.role == SpanRole::kSharedDocument && jobs.at(span.entry).finishes_in_step();
  }
  if (span.role == SpanRole::kSharedDocument) return true;
  for (size_t i = 0; i < span.blocks.size(); ++i) {
    const int64_t begin = static_cast<int64_t>(i) * kBlockSize;
    const auto length =
        static_cast<int32_t>(std::min<int64_t>(kBlockSize, span.num_tokens() - begin));
    plan_->copies.push_back({span.entry->blocks[i], span.blocks[i], length, span.begin});
  }
  span.copy_scheduled = true;
  return true;
}

void StepBuilder::add_own_rows(Sequence& sequence, SequenceSpan& span, SampleTarget& target) {
  const int64_t count = std::min(span.num_own_tokens() - span.num_known(), budget_);
  const auto index = static_cast<int32_t>(plan_->sequences.size() - 1);
  const auto last_position = sequence.num_tokens() - 1;
  for (int64_t i = span.num_known(); i < span.num_known() + count; ++i) {
    Row row;
    row.position = span.begin + i;
    row.token_id = sequence.token(row.position);
    row.write_slot =
        int64_t{span.blocks[static_cast<size_t>(i / kBlockSize)]} * kBlockSize + i % kBlockSize;
    row.write_angle = span.key_form == KeyForm::kTurned ? i : 0;
    row.sequence = index;
    row.sample = row.position == last_position || sequence.wants_logits_of(row.position);
    target.num_rows += row.sample ? 1 : 0;
    target.next_token = target.next_token || row.position == last_position;
    plan_->rows.push_back(row);
  }
  span.num_scheduled += count;
  budget_ -= count;
}

void StepBuilder::add_document_placements(const SequenceSpan& span) {
  const int64_t length = span.num_tokens();
  if (span.role == SpanRole::kCopiedDocument) {
    const int64_t angle = span.begin;
    plan_->placements.push_back(
        {SpanView{span.blocks, length, angle, KeyForm::kTurned}, 0, length, span.begin});
    return;
  }
  const int64_t own = span.num_own_tokens();
  if (own > 0) {
    const int64_t known = span.num_known();
    plan_->placements.push_back(
        {SpanView{span.blocks, known, 0, span.key_form}, 0, known, span.begin});
  }
  const int64_t angle =
      ignore_placement_angles_ && span.key_form == KeyForm::kTurned ? span.begin : 0;
  if (own < length) {
    plan_->placements.push_back(
        {SpanView{span.entry->blocks, length, angle, span.key_form}, own, length, span.begin});
  }
}

// Everything up to the first span that is not known yet: no row of this step can see further.
void StepBuilder::add_placements(const Sequence& sequence) {
  for (const SequenceSpan& span : sequence.spans) {
    if (span.is_document()) {
      add_document_placements(span);
    } else if (span.num_known() > 0) {
      const int64_t known = span.num_known();
      plan_->placements.push_back(
          {SpanView{span.blocks, known, 0, KeyForm::kTurned}, 0, known, span.begin});
    }
    if (span.num_known() < span.num_own_tokens()) break;
  }
}

void StepBuilder::add_prefill(Sequence& sequence, EncodeJobs& jobs) {
  for (SequenceSpan& span : sequence.spans) {
    if (span.entry == nullptr || budget_ == 0) continue;
    const auto job = jobs.find(span.entry);
    if (job != jobs.end()) add_encode_rows(*span.entry, job->second);
  }
  SampleTarget target{&sequence, 0, false};
  const auto row_begin = static_cast<int32_t>(plan_->rows.size());
  begin_sequence();
  for (SequenceSpan& span : sequence.spans) {
    if (!reach_span(span, jobs)) break;
    add_own_rows(sequence, span, target);
    if (span.num_known() < span.num_own_tokens()) break;
  }
  if (static_cast<int32_t>(plan_->rows.size()) == row_begin) {
    plan_->sequences.pop_back();
    return;
  }
  add_placements(sequence);
  end_sequence();
  if (target.num_rows > 0) sample_targets_.push_back(target);
}

void StepBuilder::add_decode(Sequence& sequence) {
  SampleTarget target{&sequence, 0, false};
  begin_sequence();
  add_own_rows(sequence, sequence.last_span(), target);
  add_placements(sequence);
  end_sequence();
  sample_targets_.push_back(target);
}

void StepBuilder::finish() {
  int64_t tokens = 0;
  int64_t num_layers = 0;
  for (const LayersOfWindow& layers : windows_) {
    tokens += layers.num_layers * count_tokens_read(layers.window);
    num_layers += layers.num_layers;
  }
  plan_->kv_tokens_read = tokens / num_layers;
}

// The rows of a sequence ascend.
int64_t StepBuilder::count_tokens_read(int64_t window) {
  readings_.clear();
  for (const SequencePlan& sequence : plan_->sequences) {
    const int64_t first = plan_->rows[static_cast<size_t>(sequence.row_begin)].position;
    const int64_t last = plan_->rows[static_cast<size_t>(sequence.row_end) - 1].position;
    for (int32_t i = sequence.placement_begin; i < sequence.placement_end; ++i) {
      const Placement& placement = plan_->placements[static_cast<size_t>(i)];
      const VisibleTokens tokens =
          visible_tokens(placement, first - placement.start, last - placement.start, window);
      if (tokens.begin >= tokens.end) continue;
      const bool raw = placement.span.key_form == KeyForm::kRaw;
      readings_.push_back({placement.span.blocks.data(), placement.begin, raw ? placement.start : 0,
                           tokens.begin, tokens.end});
    }
  }
  std::ranges::sort(readings_);
  int64_t tokens = 0;
  for (size_t i = 0; i < readings_.size();) {
    const Reading& reading = readings_[i];  // the first of equal ones begins first
    int64_t end = reading.end;
    for (++i; i < readings_.size() && readings_[i].is_same_as(reading); ++i) {
      end = std::max(end, readings_[i].end);
    }
    tokens += end - reading.begin;
  }
  return tokens;
}

}  // namespace anyslot
