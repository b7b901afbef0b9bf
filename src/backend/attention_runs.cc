#include "backend/attention_runs.h"

#include <algorithm>
#include <bit>
#include <cstddef>

namespace anyslot {

namespace {

uint64_t mix(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9e3779b97f4a7c15U;
  return hash ^ (hash >> 29);
}

/// The blocks that hold the tokens of a placement.
std::span<const BlockId> blocks_of(const Placement& placement) {
  const int64_t first = placement.begin / kBlockSize;
  return placement.span.blocks.subspan(static_cast<size_t>(first),
                                       static_cast<size_t>(blocks_for(placement.end) - first));
}

uint64_t hash_keys(const Placement& placement) {
  const std::span<const BlockId> blocks = blocks_of(placement);
  uint64_t hash = mix(0, static_cast<uint64_t>(blocks.front()));
  hash = mix(hash, static_cast<uint64_t>(blocks.back()));
  hash = mix(hash, static_cast<uint64_t>(placement.begin));
  return mix(hash, static_cast<uint64_t>(placement.end));
}

/// Whether one work item can serve both: the same stored keys and, since raw keys are turned once
/// per item, the same start for these. Sequences may hold equal block lists in arrays of their own.
bool same_keys(const Placement& a, const Placement& b) {
  if (a.begin != b.begin || a.end != b.end || a.span.key_form != b.span.key_form ||
      a.span.first_angle != b.span.first_angle) {
    return false;
  }
  if (a.span.key_form == KeyForm::kRaw && a.start != b.start) return false;
  if (a.span.blocks.data() == b.span.blocks.data()) return true;
  return std::ranges::equal(blocks_of(a), blocks_of(b));
}

}  // namespace

void AttentionRunFinder::IndexTable::reset(size_t max_entries) {
  slots_.assign(std::bit_ceil(2 * max_entries + 1), Slot{0, -1});
}

template <typename Same>
int32_t AttentionRunFinder::IndexTable::find_or_insert(uint64_t hash, int32_t fresh, Same same) {
  const size_t mask = slots_.size() - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    Slot& slot = slots_[i];
    if (slot.index < 0) {
      slot = {hash, fresh};
      return fresh;
    }
    if (slot.hash == hash && same(slot.index)) return slot.index;
  }
}

const AttentionRuns& AttentionRunFinder::find(const StepPlan& step,
                                              std::span<const int32_t> row_indices, int64_t window,
                                              int32_t private_rows) {
  select_rows(step, row_indices);
  collect_uses(step, window, private_rows);
  list_members_of_groups();
  join_groups_into_runs();
  list_spans_of_runs();
  return result_;
}

void AttentionRunFinder::select_rows(const StepPlan& step, std::span<const int32_t> row_indices) {
  result_.selected.clear();
  for (const SequencePlan& sequence : step.sequences) {
    const auto begin = std::ranges::lower_bound(row_indices, sequence.row_begin);
    const auto end = std::lower_bound(begin, row_indices.end(), sequence.row_end);
    SelectedRows selected{static_cast<int32_t>(begin - row_indices.begin()),
                          static_cast<int32_t>(end - row_indices.begin()), 0, 0};
    if (begin != end) {
      selected.min_position = step.rows[*begin].position;
      selected.max_position = selected.min_position;
      for (auto row = begin; row != end; ++row) {
        selected.min_position = std::min(selected.min_position, step.rows[*row].position);
        selected.max_position = std::max(selected.max_position, step.rows[*row].position);
      }
    }
    result_.selected.push_back(selected);
  }
}

void AttentionRunFinder::collect_uses(const StepPlan& step, int64_t window, int32_t private_rows) {
  uses_.clear();
  groups_.clear();
  table_.reset(step.placements.size());
  for (size_t s = 0; s < step.sequences.size(); ++s) {
    const SequencePlan& sequence = step.sequences[s];
    const SelectedRows& selected = result_.selected[s];
    if (selected.size() == 0) continue;
    const bool shared = step.share_rows && selected.size() < private_rows;
    for (int32_t p = sequence.placement_begin; p < sequence.placement_end; ++p) {
      const Placement& placement = step.placements[p];
      const VisibleTokens tokens =
          visible_tokens(placement, selected.min_position - placement.start,
                         selected.max_position - placement.start, window);
      if (tokens.begin >= tokens.end) continue;
      const int32_t group = group_of(step, p, shared);
      groups_[group].readers = mix(groups_[group].readers, s);
      uses_.push_back({static_cast<int32_t>(s), p, group});
    }
  }
}

int32_t AttentionRunFinder::group_of(const StepPlan& step, int32_t placement, bool shared) {
  const auto fresh = static_cast<int32_t>(groups_.size());
  int32_t group = fresh;
  if (shared) {
    const Placement& keys = step.placements[placement];
    group = table_.find_or_insert(hash_keys(keys), fresh, [&](int32_t other) {
      return same_keys(step.placements[groups_[other].placement], keys);
    });
  }
  if (group == fresh) groups_.push_back({0, placement, -1, 0, 0});
  return group;
}

void AttentionRunFinder::list_members_of_groups() {
  for (const Use& use : uses_) ++groups_[use.group].end;
  int32_t begin = 0;
  for (Group& group : groups_) {
    const int32_t size = group.end;
    group.begin = begin;
    group.end = begin;
    begin += size;
  }
  result_.placements.resize(uses_.size());
  result_.members.resize(uses_.size());
  for (const Use& use : uses_) {
    const int32_t place = groups_[use.group].end++;
    result_.placements[place] = use.placement;
    result_.members[place] = use.sequence;
  }
}

void AttentionRunFinder::join_groups_into_runs() {
  result_.runs.clear();
  table_.reset(groups_.size());
  const auto members = result_.members.begin();
  for (Group& group : groups_) {
    const auto fresh = static_cast<int32_t>(result_.runs.size());
    group.run = table_.find_or_insert(group.readers, fresh, [&](int32_t other) {
      const AttentionRun& run = result_.runs[other];
      return std::equal(members + run.member_begin, members + run.member_end, members + group.begin,
                        members + group.end);
    });
    if (group.run == fresh) result_.runs.push_back({group.begin, group.end, 0, 0});
    ++result_.runs[group.run].span_end;
  }
}

void AttentionRunFinder::list_spans_of_runs() {
  int32_t begin = 0;
  for (AttentionRun& run : result_.runs) {
    const int32_t size = run.span_end;
    run.span_begin = begin;
    run.span_end = begin;
    begin += size;
  }
  result_.spans.resize(groups_.size());
  for (const Group& group : groups_) {
    result_.spans[result_.runs[group.run].span_end++] = group.begin;
  }
}

}  // namespace anyslot
