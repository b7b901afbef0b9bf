#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "anyslot/status.h"
#include "backend/attention_plan.h"
#include "backend/cpu/cpu_kv_storage.h"
#include "backend/cpu/host_memory.h"
#include "backend/cpu/kernels.h"
#include "backend/ops.h"
#include "base/tensor_view.h"
#include "base/thread_pool.h"

namespace anyslot::cpu {

/// One layer's attention: what to attend to, and how it is cut into work.
struct AttentionCall {
  const CpuKvStorage& storage;
  int layer;
  const AttentionSpec& spec;
  const StepPlan& step;
  const AttentionPlan& plan;
  const TensorView& q;    // float32 [n, num_heads * head_dim]
  const TensorView& out;  // float32 or bfloat16, same shape
};

/// kv heads [begin, end).
struct KvHeads {
  int begin;
  int end;

  int size() const { return end - begin; }
};

/// Runs attention plans: tasks, each a work item for a few kv heads, then the merges. A task takes
/// its heads in turn at every few blocks: side by side in memory, they share pages and angles.
class AttentionRunner {
 public:
  static int tasks_of_item(int num_kv_heads);

  /// Both must outlive it.
  AttentionRunner(const KernelTable& kernels, ThreadPool& threads);
  ~AttentionRunner();

  /// Fails with kResourceExhausted only.
  Status run(const AttentionCall& call);

 private:
  struct Worker;
  struct BlockRun;

  Status reserve(const AttentionCall& call);
  void make_token_turns(const AttentionCall& call);
  void run_item(const AttentionCall& call, const WorkItem& item, KvHeads heads, Worker& worker);
  static void find_visible_tokens(const AttentionCall& call, const Range& range, Worker& worker);
  void turn_queries(const AttentionCall& call, const Range& range, KvHeads heads, Worker& worker);
  void run_range(const AttentionCall& call, const WorkItem& item, int32_t index, KvHeads heads,
                 Worker& worker);
  static int list_blocks(const AttentionCall& call, const Range& range, BlockRun blocks,
                         KvHeads heads, int listed, Worker& worker);
  void turn_keys(const AttentionCall& call, int64_t position, BlockRun blocks, KvHeads heads,
                 Worker& worker);
  void attend(BlockRun blocks, KvHeads heads, Worker& worker);
  void store(const AttentionCall& call, const WorkItem& item, KvHeads heads, Worker& worker);
  void merge(const AttentionCall& call, const Merge& order, int kv_head, Worker& worker);

  const KernelTable& kernels_;
  ThreadPool& threads_;
  const KvKernels* kv_ = nullptr;  // of the call at hand
  std::vector<std::unique_ptr<Worker>> workers_;
  HostMemory partials_;             // float32 [num_partials, num_heads, head_dim + 2]
  std::vector<float> token_turns_;  // cosines, then sines: [2, num_pairs, 16 tokens]
};

}  // namespace anyslot::cpu
