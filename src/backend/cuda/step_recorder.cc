#include "backend/cuda/step_recorder.h"

#include "backend/cuda/cuda_check.h"

namespace anyslot::cuda {

namespace {

/// Recording costs about as much as running a step twice, so it must pay; and the first runs choose
/// algorithms and take memory.
constexpr int kRunsBeforeRecording = 3;
/// Entries whose addresses have changed are never found again; they go when so many have come
/// together.
constexpr size_t kMaxEntries = 256;

}  // namespace

Status StepRecorder::run(const Facts& facts, FunctionRef<Status(bool recording)> work,
                         FunctionRef<bool()> was_recordable, cudaStream_t stream) {
  if (entries_.size() >= kMaxEntries && !entries_.contains(facts)) entries_.clear();
  Entry& entry = entries_[facts];
  if (entry.graph == nullptr) {
    if (!entry.recordable || entry.times_run < kRunsBeforeRecording) {
      Status status = work(false);
      entry.recordable = entry.recordable && status.ok() && was_recordable();
      ++entry.times_run;
      return status;
    }
    if (Status status = record(entry, work, stream); !status) return status;
  }
  ++num_replays_;
  return cuda_status(cudaGraphLaunch(entry.graph.get(), stream), "a recorded step");
}

Status StepRecorder::record(Entry& entry, FunctionRef<Status(bool recording)> work,
                            cudaStream_t stream) {
  if (Status status = cuda_status(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
                                  "recording a step");
      !status) {
    return status;
  }
  Status status = work(true);
  cudaGraph_t graph = nullptr;
  const Status ended = cuda_status(cudaStreamEndCapture(stream, &graph), "recording a step");
  if (status.ok()) status = ended;
  if (status.ok()) {
    cudaGraphExec_t runnable = nullptr;
    status = cuda_status(cudaGraphInstantiate(&runnable, graph, 0), "recording a step");
    entry.graph.reset(runnable);
    ++num_records_;
  }
  if (graph != nullptr) cudaGraphDestroy(graph);
  return status;
}

}  // namespace anyslot::cuda
