#include "backend/cuda/step_data.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <utility>

#include "backend/cuda/cuda_check.h"
#include "backend/cuda/elementwise.h"

namespace anyslot::cuda {

namespace {

constexpr size_t kAlignment = 16;

int32_t narrowed(int64_t value) { return static_cast<int32_t>(value); }

}  // namespace

template <typename T>
size_t StepData::append(std::span<const T> values) {
  const size_t offset = (host_.size() + kAlignment - 1) / kAlignment * kAlignment;
  host_.resize(offset + values.size_bytes());
  if (!values.empty()) std::memcpy(host_.data() + offset, values.data(), values.size_bytes());
  return offset;
}

Status StepData::begin(const StepPlan& step) {
  ++step_;
  host_.clear();
  turns_.clear();
  turn_index_.clear();
  key_angles_.clear();
  num_rows_ = static_cast<int64_t>(step.rows.size());
  row_angles_.clear();
  std::vector<int64_t> slots;
  std::vector<int32_t> sampled;
  for (const Row& row : step.rows) {
    if (row.sample) sampled.push_back(narrowed(static_cast<int64_t>(row_angles_.size())));
    row_angles_.push_back(narrowed(row.position));
    slots.push_back(row.write_slot);
  }
  positions_ = append(std::span<const int32_t>(row_angles_));
  write_slots_ = append(std::span<const int64_t>(slots));
  sampled_rows_ = append(std::span<const int32_t>(sampled));
  for (const Row& row : step.rows) row_angles_.push_back(narrowed(row.write_angle));

  std::vector<int32_t> blocks;
  block_offsets_.clear();
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
    const bool raw = placement.span.key_form == KeyForm::kRaw;
    key_offsets_.push_back(raw ? narrowed(static_cast<int64_t>(key_angles_.size())) : -1);
    for (int64_t i = 0; raw && i < placement.end; ++i) {
      key_angles_.push_back(narrowed(placement.start + i));
    }
  }
  blocks_ = append(std::span<const int32_t>(blocks));
  return {};
}

int32_t StepData::turn_of(int64_t angle) {
  const auto [entry, is_new] =
      turn_index_.try_emplace(angle, narrowed(static_cast<int64_t>(turns_.size())));
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
      result.has_raw_keys = result.has_raw_keys || ranges[r].key_rotation >= 0;
    }
  }
  std::vector<int32_t> starts(plan.starts.size());
  std::vector<int32_t> turns(plan.starts.size());
  for (const WorkItem& item : items) {
    for (int32_t i = item.range_begin; i < item.range_end; ++i) {
      const Range& range = plan.ranges[i];
      if (range.starts < 0) continue;
      const int64_t first_angle = step.placements[range.placement].span.first_angle;
      for (int64_t r = range.starts; r < range.starts + rows_of(item); ++r) {
        starts[r] = narrowed(plan.starts[r]);
        turns[r] = turn_of(first_angle - plan.starts[r]);
      }
    }
  }
  result.items = append(std::span<const WorkItem>(items));
  result.ranges = append(std::span<const DeviceRange>(ranges));
  result.rows = append(std::span<const int32_t>(plan.rows));
  result.output_rows = append(std::span<const int32_t>(plan.output_rows));
  result.row_starts = append(std::span<const int32_t>(starts));
  result.row_turns = append(std::span<const int32_t>(turns));
  result.merges = append(std::span<const Merge>(plan.merges));
  result.slots = append(std::span<const int32_t>(plan.slots));
  return result;
}

Status StepData::upload(cudaStream_t stream) {
  std::vector<int32_t> angles = row_angles_;
  angles.insert(angles.end(), turns_.begin(), turns_.end());
  angles.insert(angles.end(), key_angles_.begin(), key_angles_.end());
  angles_ = append(std::span<const int32_t>(angles));
  if (Status status = copied_.wait(); !status) return status;
  if (Status status = pinned_.reserve(host_.size()); !status) return status;
  if (Status status = device_.reserve(host_.size(), "a step's plan"); !status) return status;
  std::memcpy(pinned_.data(), host_.data(), host_.size());
  if (Status status = cuda_status(cudaMemcpyAsync(device_.data(), pinned_.data(), host_.size(),
                                                  cudaMemcpyHostToDevice, stream),
                                  "copying a step's plan");
      !status) {
    return status;
  }
  return copied_.record(stream);
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
  ropes_.push_back(std::move(fresh));
  return &ropes_.back();
}

Expected<StepData::Rotations> StepData::rotations(const RopeTable& rope, cudaStream_t stream) {
  Expected<DeviceRope*> found = find_rope(rope);
  if (!found) return found.status();
  DeviceRope& known = **found;
  const int pairs = rope.num_pairs();
  const auto num_turns = static_cast<int64_t>(turns_.size());
  if (known.step != step_) {
    const int64_t num_angles = 2 * num_rows_ + num_turns + static_cast<int64_t>(key_angles_.size());
    const auto bytes = static_cast<size_t>(num_angles * pairs) * sizeof(float2);
    if (Status status = known.rotations.reserve(bytes, "a step's rotations"); !status) {
      return status;
    }
    if (Status status = launch_rotations(
            at<int32_t>(angles_), num_angles, num_rows_, known.parameters.attention_factor,
            known.inv_freq.as<double>(), pairs, known.rotations.as<float2>(), stream);
        !status) {
      return status;
    }
    known.step = step_;
  }
  const auto* rows = known.rotations.as<const float2>();
  const float2* writes = rows + num_rows_ * pairs;
  const float2* turns = writes + num_rows_ * pairs;
  return Rotations{rows, writes, turns, turns + num_turns * pairs};
}

void StepData::fill(const DevicePlan& plan, AttentionArgs& args) const {
  args.items = at<WorkItem>(plan.items);
  args.ranges = at<DeviceRange>(plan.ranges);
  args.rows = at<int32_t>(plan.rows);
  args.output_rows = at<int32_t>(plan.output_rows);
  args.row_starts = at<int32_t>(plan.row_starts);
  args.row_turns = at<int32_t>(plan.row_turns);
  args.merges = at<Merge>(plan.merges);
  args.slots = at<int32_t>(plan.slots);
  args.positions = at<int32_t>(positions_);
  args.blocks = at<int32_t>(blocks_);
  args.num_merges = plan.num_merges;
}

}  // namespace anyslot::cuda
