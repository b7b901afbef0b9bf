#include "row_runner.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <thread>

namespace anyslot::cli {
namespace {

/// Hands rows to workers and their results to one reader, in order.
class OrderedResults {
 public:
  explicit OrderedResults(size_t size) : results_(size) {}

  /// The next row to work on; none when all are taken or the reader stopped.
  std::optional<size_t> take() {
    const size_t index = next_++;
    if (stopped_ || index >= results_.size()) return std::nullopt;
    return index;
  }
  void put(size_t index, Expected<Completion> result) {
    const std::lock_guard lock(mutex_);
    results_[index] = std::move(result);
    changed_.notify_one();
  }
  Expected<Completion> wait(size_t index) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return results_[index].has_value(); });
    Expected<Completion> result = *std::move(results_[index]);
    results_[index].reset();
    return result;
  }
  void stop() { stopped_ = true; }
  bool stopped() const { return stopped_; }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::optional<Expected<Completion>>> results_;
  std::atomic<size_t> next_ = 0;
  std::atomic<bool> stopped_ = false;
};

Expected<Completion> answer(Engine& engine, const InputRow& row, const SamplingParams& sampling,
                            const OrderedResults& results) {
  try {
    Expected<Request> request = request_of(engine, row, sampling);
    if (!request) return request.status();
    return complete(engine, *request, [&](std::string_view) {
      return results.stopped() ? Status(StatusCode::kCancelled, "stopped") : Status();
    });
  } catch (
      const std::exception& error) {  // out of memory, on a thread where nobody else catches it
    return internal_error(error.what());
  }
}

Status row_failure(const std::string& input, const InputRow& row, const Status& status) {
  return {status.code(),
          fmt::format("{}:{}: row {}: {}", input, row.line, row.id.dump(), status.message())};
}

}  // namespace

Expected<Request> request_of(const Engine& engine, const InputRow& row,
                             const SamplingParams& sampling) {
  Request request;
  request.sampling = sampling;
  request.method = row.method;
  if (row.max_tokens) request.sampling.max_tokens = *row.max_tokens;
  if (!row.segments.empty()) {
    request.segments = row.segments;
    return request;
  }
  Expected<std::vector<Segment>> segments = engine.render_rag(row.documents, row.question);
  if (!segments) return segments.status();
  request.segments = *std::move(segments);
  return request;
}

Status run_rows(Engine& engine, const std::vector<InputRow>& rows, const SamplingParams& sampling,
                int concurrency, const std::string& input,
                const std::function<Status(const InputRow&, const Completion&)>& done) {
  OrderedResults results(rows.size());
  std::vector<std::jthread> workers;
  for (size_t w = 0; w < std::min(static_cast<size_t>(concurrency), rows.size()); ++w) {
    workers.emplace_back([&] {
      while (const std::optional<size_t> index = results.take()) {
        results.put(*index, answer(engine, rows[*index], sampling, results));
      }
    });
  }
  Status status;
  for (size_t r = 0; r < rows.size() && status.ok(); ++r) {
    const Expected<Completion> completion = results.wait(r);
    status =
        completion ? done(rows[r], *completion) : row_failure(input, rows[r], completion.status());
  }
  results.stop();
  return status;
}

}  // namespace anyslot::cli
