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

/// Where the parts of an attention plan lie in a step's device memory.
struct DevicePlan {
  int64_t window = 0;
  size_t items = 0;  // offsets in bytes
  size_t ranges = 0;
  size_t rows = 0;
  size_t output_rows = 0;
  size_t row_starts = 0;
  size_t row_turns = 0;
  size_t merges = 0;
  size_t slots = 0;
  int num_merges = 0;
  int num_partials = 0;
  bool has_raw_keys = false;
  std::vector<int> items_up_to;  // items are in order of rows: how many have at most so many
};

/// Everything about a step that kernels read, copied to the device at once.
class StepData {
 public:
  /// Begins a step: its rows, block lists and samples.
  Status begin(const StepPlan& step);
  DevicePlan add(const StepPlan& step, const AttentionPlan& plan);
  /// Starts the copy to the device; add() comes before it.
  Status upload(cudaStream_t stream);

  /// Rotations of the step's angles under a rope, computed at its first use in the step.
  struct Rotations {
    const float2* rows;    // at each row's position, times the attention factor
    const float2* writes;  // at each row's write_angle
    const float2* turns;
    const float2* keys;
  };
  Expected<Rotations> rotations(const RopeTable& rope, cudaStream_t stream);

  void fill(const DevicePlan& plan, AttentionArgs& args) const;
  const int64_t* write_slots() const { return at<int64_t>(write_slots_); }
  const int32_t* sampled_rows() const { return at<int32_t>(sampled_rows_); }

 private:
  struct DeviceRope {
    RopeParameters parameters;
    DeviceMemory inv_freq;
    DeviceMemory rotations;
    int64_t step = -1;
  };

  template <typename T>
  size_t append(std::span<const T> values);
  template <typename T>
  const T* at(size_t offset) const {
    return reinterpret_cast<const T*>(device_.as<std::byte>() + offset);
  }
  int32_t turn_of(int64_t angle);
  DeviceRange device_range(const StepPlan& step, const AttentionPlan& plan, const WorkItem& item,
                           const Range& range);
  Expected<DeviceRope*> find_rope(const RopeTable& rope);

  int64_t step_ = 0;
  std::vector<std::byte> host_;
  PinnedMemory pinned_;
  DeviceMemory device_;
  Event copied_;

  size_t positions_ = 0;
  size_t write_slots_ = 0;
  size_t sampled_rows_ = 0;
  size_t blocks_ = 0;
  size_t angles_ = 0;
  int64_t num_rows_ = 0;
  std::vector<int32_t> block_offsets_;  // of each placement
  std::vector<int32_t> row_angles_;     // positions, then write angles
  std::vector<int32_t> turns_;
  std::unordered_map<int64_t, int32_t> turn_index_;
  std::vector<int32_t> key_angles_;
  std::vector<int32_t> key_offsets_;  // of each placement; -1: turned keys
  std::vector<DeviceRope> ropes_;
};

}  // namespace anyslot::cuda
