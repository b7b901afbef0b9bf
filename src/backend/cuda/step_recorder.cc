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

constexpr const char* kWhat = "recording a step";

/// A stream that records. Leaving the scope ends it, also when an exception does: a stream that
/// records runs nothing.
class Capture {
 public:
  explicit Capture(cudaStream_t stream) : stream_(stream) {}
  Capture(const Capture&) = delete;
  Capture& operator=(const Capture&) = delete;
  ~Capture() {
    if (recording_) static_cast<void>(end());
    if (graph_ != nullptr) cudaGraphDestroy(graph_);
  }

  Status begin() {
    Status status =
        cuda_status(cudaStreamBeginCapture(stream_, cudaStreamCaptureModeThreadLocal), kWhat);
    recording_ = status.ok();
    return status;
  }
  Status end() {
    recording_ = false;
    return cuda_status(cudaStreamEndCapture(stream_, &graph_), kWhat);
  }
  cudaGraph_t graph() const { return graph_; }

 private:
  cudaStream_t stream_;
  cudaGraph_t graph_ = nullptr;
  bool recording_ = false;
};

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
    entry.recordable = false;  // once only: what fails now fails again
    if (Status status = record(entry, work, stream); !status) return status;
  }
  ++num_replays_;
  return cuda_status(cudaGraphLaunch(entry.graph.get(), stream), "a recorded step");
}

Status StepRecorder::record(Entry& entry, FunctionRef<Status(bool recording)> work,
                            cudaStream_t stream) {
  Capture capture(stream);
  if (Status status = capture.begin(); !status) return status;
  if (Status status = work(true); !status) return status;
  if (Status status = capture.end(); !status) return status;
  cudaGraphExec_t runnable = nullptr;
  Status status = cuda_status(cudaGraphInstantiate(&runnable, capture.graph(), 0), kWhat);
  if (!status) return status;
  entry.graph.reset(runnable);
  ++num_records_;
  return {};
}

}  // namespace anyslot::cuda
