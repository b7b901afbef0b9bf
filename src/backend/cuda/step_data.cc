#include "backend/cuda/step_data.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/kv_kernels.h"

namespace anyslot::cuda {

namespace {

constexpr size_t kSmallestSection = 256;

int32_t narrowed(int64_t value) { return static_cast<int32_t>(value); }

}  // namespace

PlanCounts plan_counts(const DevicePlan& plan, int group) {
  PlanCounts counts;
  counts.num_merges = plan.num_merges;
  if (plan.items_up_to.empty()) return counts;
  counts.max_rows = narrowed(static_cast<int64_t>(plan.items_up_to.size())) - 1;
  counts.num_narrow =
      plan.items_up_to[static_cast<size_t>(std::min(kNarrowRows / group, counts.max_rows))];
  counts.num_wide = plan.items_up_to.back() - counts.num_narrow;
  return counts;
}

template <typename T>
void StepData::put(int section, std::span<const T> values) {
  const auto index = static_cast<size_t>(section);
  if (sections_.size() <= index) sections_.resize(index + 1);
  const std::span<const std::byte> bytes = std::as_bytes(values);
  sections_[index].bytes.assign(bytes.begin(), bytes.end());
}

void StepData::begin(const StepPlan& step, int group) {
  ++step_;
  group_ = group;
  num_plans_ = 0;
  for (Section& section : sections_) section.bytes.clear();
  turns_.clear();
  turn_index_.clear();
  num_rows_ = static_cast<int64_t>(step.rows.size());
  row_angles_.clear();
  std::vector<int64_t> slots;
  std::vector<int32_t> sampled;
  for (const Row& row : step.rows) {
    if (row.sample) sampled.push_back(narrowed(static_cast<int64_t>(row_angles_.size())));
    row_angles_.push_back(narrowed(row.position));
    slots.push_back(row.write_slot);
  }
  put(kPositions, std::span<const int32_t>(row_angles_));
  put(kWriteSlots, std::span<const int64_t>(slots));
  put(kSampledRows, std::span<const int32_t>(sampled));
  for (const Row& row : step.rows) row_angles_.push_back(narrowed(row.write_angle));
  put_block_lists(step);
}

void StepData::put_block_lists(const StepPlan& step) {
  std::vector<int32_t> blocks;
  block_offsets_.clear();
  key_angles_.clear();
  key_offsets_.clear();
  struct List {
    size_t offset;
    size_t size;
  };
  std::unordered_map<const BlockId*, List> lists;  // requests that share a document share its list
  for (const Placement& placement : step.placements) {
    const std::span<const BlockId> list = placement.span.blocks;
    const auto [entry, is_new] = lists.try_emplace(list.data(), List{blocks.size(), list.size()});
    if (!is_new && entry->second.size < list.size()) entry->second = {blocks.size(), list.size()};
    if (entry->second.offset == blocks.size())
      blocks.insert(blocks.end(), list.begin(), list.end());
    block_offsets_.push_back(narrowed(static_cast<int64_t>(entry->second.offset)));
    if (placement.span.key_form != KeyForm::kRaw) {
      key_offsets_.push_back(-1);
      continue;
    }
    if (key_angles_.empty()) {
      for (int32_t i = 0; i < kBlockSize; ++i) key_angles_.push_back(i);
    }
    key_offsets_.push_back(narrowed(static_cast<int64_t>(key_angles_.size())));
    for (int64_t i = 0; i < placement.end; i += kBlockSize) {
      key_angles_.push_back(narrowed(placement.start + i));
    }
  }
  put(kBlocks, std::span<const int32_t>(blocks));
}

/// Its place after the raw keys' angles, which are all known by now.
int32_t StepData::turn_of(int64_t angle) {
  const auto [entry, is_new] = turn_index_.try_emplace(
      angle, narrowed(static_cast<int64_t>(key_angles_.size() + turns_.size())));
  if (is_new) turns_.push_back(narrowed(angle));
  return entry->second;
}

DeviceRange StepData::device_range(const StepPlan& step, const AttentionPlan& plan,
                                   const WorkItem& item, const Range& range) {
  const Placement& placement = step.placements[range.placement];
  const bool raw = placement.span.key_form == KeyForm::kRaw;
  DeviceRange result;
  result.blocks = block_offsets_[range.placement];
  result.start = narrowed(placement.start);
  result.turn = turn_of(raw ? 0 : placement.span.first_angle - placement.start);
  result.starts = narrowed(range.starts);
  result.key_rotation = key_offsets_[range.placement];
  int64_t min_distance = std::numeric_limits<int64_t>::max();
  int64_t max_distance = std::numeric_limits<int64_t>::min();
  for (int32_t r = 0; r < item.row_end - item.row_begin; ++r) {
    const int64_t start = range.starts < 0 ? placement.start : plan.starts[range.starts + r];
    const int64_t distance = step.rows[plan.rows[item.row_begin + r]].position - start;
    min_distance = std::min(min_distance, distance);
    max_distance = std::max(max_distance, distance);
  }
  const int64_t first_seen = plan.window > 0 ? min_distance - plan.window + 1 : range.begin;
  result.end = narrowed(std::min(range.end, max_distance + 1));
  result.begin = narrowed(std::min<int64_t>(std::max(range.begin, first_seen), result.end));
  result.min_distance = narrowed(min_distance);
  result.max_distance = narrowed(max_distance);
  return result;
}

DevicePlan StepData::add(const StepPlan& step, const AttentionPlan& plan) {
  DevicePlan result;
  result.window = plan.window;
  result.first_section = kFirstPlan + num_plans_++ * kPlanSections;
  result.num_merges = narrowed(static_cast<int64_t>(plan.merges.size()));
  result.num_partials = plan.num_partials;

  std::vector<WorkItem> items = plan.items;
  const auto rows_of = [](const WorkItem& item) { return item.row_end - item.row_begin; };
  std::ranges::stable_sort(items, {}, rows_of);
  for (size_t i = 0; i < items.size(); ++i) {
    const auto rows = static_cast<size_t>(rows_of(items[i]));
    const int before = result.items_up_to.empty() ? 0 : result.items_up_to.back();
    if (result.items_up_to.size() <= rows) result.items_up_to.resize(rows + 1, before);
    result.items_up_to[rows] = static_cast<int>(i + 1);
  }
  std::vector<DeviceRange> ranges(plan.ranges.size());
  for (const WorkItem& item : items) {
    for (int32_t r = item.range_begin; r < item.range_end; ++r) {
      ranges[r] = device_range(step, plan, item, plan.ranges[r]);
    }
  }
  const int first = result.first_section;
  put_row_turns(step, plan, first);
  const PlanCounts counts = plan_counts(result, group_);
  put(first + kCounts, std::span<const PlanCounts>(&counts, 1));
  put(first + kItems, std::span<const WorkItem>(items));
  put(first + kRanges, std::span<const DeviceRange>(ranges));
  put(first + kRows, std::span<const int32_t>(plan.rows));
  put(first + kOutputRows, std::span<const int32_t>(plan.output_rows));
  put(first + kMerges, std::span<const Merge>(plan.merges));
  put(first + kSlots, std::span<const int32_t>(plan.slots));
  return result;
}

void StepData::put_row_turns(const StepPlan& step, const AttentionPlan& plan, int first_section) {
  std::vector<int32_t> starts(plan.starts.size());
  std::vector<int32_t> turns(plan.starts.size());
  for (const WorkItem& item : plan.items) {
    for (int32_t i = item.range_begin; i < item.range_end; ++i) {
      const Range& range = plan.ranges[i];
      if (range.starts < 0) continue;
      const int64_t first_angle = step.placements[range.placement].span.first_angle;
      for (int64_t r = range.starts; r < range.starts + item.row_end - item.row_begin; ++r) {
        starts[r] = narrowed(plan.starts[r]);
        turns[r] = turn_of(first_angle - plan.starts[r]);
      }
    }
  }
  put(first_section + kRowStarts, std::span<const int32_t>(starts));
  put(first_section + kRowTurns, std::span<const int32_t>(turns));
}

/// Places all sections; those that may be long come last. Returns the bytes in use.
size_t StepData::lay_out() {
  bool grown = false;
  for (Section& section : sections_) {
    if (section.bytes.size() <= section.capacity) continue;
    section.capacity = std::bit_ceil(std::max(section.bytes.size(), kSmallestSection));
    grown = true;
  }
  if (grown) {
    ++layout_version_;
    size_t offset = 0;
    const auto place = [&offset](Section& section) {
      section.offset = offset;
      offset += section.capacity;
    };
    for (size_t i = 0; i < sections_.size(); ++i) {
      if (i != kBlocks && i != kAngles) place(sections_[i]);
    }
    place(sections_[kBlocks]);
    place(sections_[kAngles]);
  }
  return sections_[kAngles].offset + sections_[kAngles].bytes.size();
}

Status StepData::upload(cudaStream_t stream) {
  std::vector<int32_t> angles = row_angles_;
  angles.insert(angles.end(), key_angles_.begin(), key_angles_.end());
  angles.insert(angles.end(), turns_.begin(), turns_.end());
  num_angles_ = static_cast<int64_t>(angles.size());
  put(kAngles, std::span<const int32_t>(angles));
  const int64_t counts[] = {num_angles_, static_cast<int64_t>(key_angles_.size())};
  put(kAngleCounts, std::span<const int64_t>(counts));
  const size_t bytes = lay_out();
  const void* before = copy_.as<void>();
  const size_t room = sections_[kAngles].offset + sections_[kAngles].capacity;
  if (Status status = copy_.reserve(bytes, room, "a step's plan"); !status) return status;
  if (copy_.as<void>() != before) ++layout_version_;
  for (const Section& section : sections_) {
    std::ranges::copy(section.bytes, copy_.host() + section.offset);
  }
  for (DeviceRope& rope : ropes_) {
    if (Status status = reserve_rotations(rope); !status) return status;
  }
  return copy_.send(bytes, stream, "a step's plan");
}

Expected<StepData::DeviceRope*> StepData::find_rope(const RopeTable& rope) {
  const RopeParameters& parameters = rope.parameters();
  for (DeviceRope& known : ropes_) {
    if (known.parameters.inv_freq == parameters.inv_freq &&
        known.parameters.attention_factor == parameters.attention_factor) {
      return &known;
    }
  }
  DeviceRope fresh;
  fresh.parameters = parameters;
  const size_t bytes = parameters.inv_freq.size() * sizeof(double);
  if (Status status = fresh.inv_freq.reserve(bytes, "rope frequencies"); !status) return status;
  if (Status status = cuda_status(cudaMemcpy(fresh.inv_freq.data(), parameters.inv_freq.data(),
                                             bytes, cudaMemcpyHostToDevice),
                                  "copying rope frequencies");
      !status) {
    return status;
  }
  if (Status status = reserve_rotations(fresh); !status) return status;
  ropes_.push_back(std::move(fresh));
  return &ropes_.back();
}

Status StepData::reserve_rotations(DeviceRope& rope) {
  const auto bytes =
      static_cast<size_t>(num_angles_) * rope.parameters.inv_freq.size() * sizeof(float2);
  if (bytes <= rope.rotations.size_bytes()) return {};
  ++layout_version_;
  return rope.rotations.reserve(std::bit_ceil(bytes), "a step's rotations");
}

Expected<StepData::Rotations> StepData::rotations(const RopeTable& rope, bool recording,
                                                  cudaStream_t stream) {
  Expected<DeviceRope*> found = find_rope(rope);
  if (!found) return found.status();
  DeviceRope& known = **found;
  const int pairs = rope.num_pairs();
  if (known.step != step_) {
    const AngleList angles{.angles = at<int32_t>(kAngles),
                           .count = num_angles_,
                           .num_keys = static_cast<int64_t>(key_angles_.size()),
                           .recorded_counts = recording ? at<int64_t>(kAngleCounts) : nullptr,
                           .num_scaled = num_rows_,
                           .first_key = 2 * num_rows_};
    if (Status status =
            launch_rotations(angles, known.parameters.attention_factor, known.inv_freq.as<double>(),
                             pairs, known.rotations.as<float2>(), stream);
        !status) {
      return status;
    }
    known.step = step_;
  }
  const auto* rows = known.rotations.as<const float2>();
  const float2* writes = rows + num_rows_ * pairs;
  return Rotations{rows, writes, writes + num_rows_ * pairs};
}

const PlanCounts* StepData::recorded_counts(const DevicePlan& plan) const {
  return at<PlanCounts>(plan.first_section + kCounts);
}

void StepData::fill(const DevicePlan& plan, AttentionArgs& args) const {
  const int first = plan.first_section;
  args.items = at<WorkItem>(first + kItems);
  args.ranges = at<DeviceRange>(first + kRanges);
  args.rows = at<int32_t>(first + kRows);
  args.output_rows = at<int32_t>(first + kOutputRows);
  args.row_starts = at<int32_t>(first + kRowStarts);
  args.row_turns = at<int32_t>(first + kRowTurns);
  args.merges = at<Merge>(first + kMerges);
  args.slots = at<int32_t>(first + kSlots);
  args.positions = at<int32_t>(kPositions);
  args.blocks = at<int32_t>(kBlocks);
  args.raw_keys = has_raw_keys();
}

}  // namespace anyslot::cuda
