#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "backend/attention_plan.h"
#include "backend/cuda/attention_args.h"
#include "backend/cuda/device_memory.h"
#include "backend/rope.h"
#include "plan/step_plan.h"

namespace anyslot::cuda {

/// An attention plan in a step's device memory.
struct DevicePlan {
  int64_t window = 0;
  int first_section = 0;  // of StepData
  int num_merges = 0;
  int num_partials = 0;
  std::vector<int> items_up_to;  // items are in order of rows: how many have at most so many
};

/// How a plan's items part between the kernels. group: heads that share a kv head.
PlanCounts plan_counts(const DevicePlan& plan, int group);

/// Everything about a step that kernels read, copied to the device at once. Each kind of data has a
/// place of its own, which stays where it is until it must grow: recorded steps read it there.
class StepData {
 public:
  /// Begins a step: its rows, block lists and samples. group: heads that share a kv head, for the
  /// counts that recorded steps read.
  void begin(const StepPlan& step, int group);
  DevicePlan add(const StepPlan& step, const AttentionPlan& plan);
  /// Starts the copy to the device; add() comes before it.
  Status upload(cudaStream_t stream);

  /// Rotations of the step's angles under a rope, computed at its first use in the step.
  struct Rotations {
    const float2* rows;    // at each row's position, times the attention factor
    const float2* writes;  // at each row's write_angle
    const float2* turns;   // of raw keys, and of rows to spans
  };
  /// recording: the launch serves steps with other numbers of angles too.
  Expected<Rotations> rotations(const RopeTable& rope, bool recording, cudaStream_t stream);

  void fill(const DevicePlan& plan, AttentionArgs& args) const;
  /// Whether some placement of the step has raw keys.
  bool has_raw_keys() const { return !key_angles_.empty(); }
  const PlanCounts* recorded_counts(const DevicePlan& plan) const;
  const int64_t* write_slots() const { return at<int64_t>(kWriteSlots); }
  const int32_t* sampled_rows() const { return at<int32_t>(kSampledRows); }

  /// Grows with every change of an address that a recorded step may hold.
  int64_t layout_version() const { return layout_version_; }

 private:
  enum SectionId {
    kAngleCounts,
    kPositions,
    kWriteSlots,
    kSampledRows,
    kBlocks,
    kAngles,
    kFirstPlan
  };
  enum PlanSectionId {
    kCounts,
    kItems,
    kRanges,
    kRows,
    kOutputRows,
    kRowStarts,
    kRowTurns,
    kMerges,
    kSlots,
    kPlanSections
  };
  struct Section {
    std::vector<std::byte> bytes;  // of this step
    size_t capacity = 0;
    size_t offset = 0;
  };
  struct DeviceRope {
    RopeParameters parameters;
    DeviceMemory inv_freq;
    DeviceMemory rotations;
    int64_t step = -1;
  };

  template <typename T>
  void put(int section, std::span<const T> values);
  template <typename T>
  const T* at(int section) const {
    return reinterpret_cast<const T*>(copy_.as<const std::byte>() +
                                      sections_[static_cast<size_t>(section)].offset);
  }
  void put_block_lists(const StepPlan& step);
  size_t lay_out();
  int32_t turn_of(int64_t angle);
  DeviceRange device_range(const StepPlan& step, const AttentionPlan& plan, const WorkItem& item,
                           const Range& range);
  void put_row_turns(const StepPlan& step, const AttentionPlan& plan, int first_section);
  Expected<DeviceRope*> find_rope(const RopeTable& rope);
  Status reserve_rotations(DeviceRope& rope);

  int64_t step_ = 0;
  int64_t layout_version_ = 0;
  int group_ = 1;
  std::vector<Section> sections_;
  int num_plans_ = 0;
  StagedCopy copy_;

  int64_t num_rows_ = 0;
  int64_t num_angles_ = 0;
  std::vector<int32_t> block_offsets_;  // of each placement
  std::vector<int32_t> row_angles_;     // positions, then write angles
  std::vector<int32_t> key_angles_;     // of raw keys: 0 to 15, then of each block's first key
  std::vector<int32_t> key_offsets_;    // of each placement; -1: turned keys
  std::vector<int32_t> turns_;
  std::unordered_map<int64_t, int32_t> turn_index_;
  std::vector<DeviceRope> ropes_;
};

}  // namespace anyslot::cuda
