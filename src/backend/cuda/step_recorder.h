#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "anyslot/status.h"
#include "base/function_ref.h"

namespace anyslot::cuda {

/// CUDA graphs of steps that come again.
class StepRecorder {
 public:
  /// What a record depends on: numbers, addresses and versions, equal for steps that one record
  /// serves.
  using Facts = std::vector<uint64_t>;

  /// Runs the record of `facts`, or `work(false)`. Work that has come often enough, and was
  /// recordable whenever it ran, is recorded by `work(true)`, which must neither allocate nor wait.
  Status run(const Facts& facts, FunctionRef<Status(bool recording)> work,
             FunctionRef<bool()> was_recordable, cudaStream_t stream);

  int64_t num_records() const { return num_records_; }
  /// Steps that ran as a record.
  int64_t num_replays() const { return num_replays_; }

 private:
  struct DestroyGraph {
    void operator()(cudaGraphExec_t graph) const { cudaGraphExecDestroy(graph); }
  };
  using Graph = std::unique_ptr<CUgraphExec_st, DestroyGraph>;
  struct Entry {
    int times_run = 0;
    bool recordable = true;
    Graph graph;
  };

  Status record(Entry& entry, FunctionRef<Status(bool recording)> work, cudaStream_t stream);

  std::map<Facts, Entry> entries_;
  int64_t num_records_ = 0;
  int64_t num_replays_ = 0;
};

}  // namespace anyslot::cuda
