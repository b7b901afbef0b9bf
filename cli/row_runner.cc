#include "row_runner.h"

#include <fmt/format.h>

#include <atomic>
#include <exception>
#include <optional>
#include <utility>

#include "ordered_work.h"

namespace anyslot::cli {
namespace {

Expected<Completion> answer(Engine& engine, const InputRow& row, const SamplingParams& sampling,
                            const std::atomic<bool>& stopped) {
  try {
    Expected<Request> request = request_of(engine, row, sampling);
    if (!request) return request.status();
    return complete(engine, *request, [&](std::string_view) {
      return stopped ? Status(StatusCode::kCancelled, "stopped") : Status();
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
  std::vector<std::optional<Expected<Completion>>> results(rows.size());
  const auto work = [&](size_t index, const std::atomic<bool>& stopped) {
    results[index] = answer(engine, rows[index], sampling, stopped);
  };
  return run_in_order(rows.size(), concurrency, work, [&](size_t index) {
    const Expected<Completion> completion = *std::exchange(results[index], std::nullopt);
    return completion ? done(rows[index], *completion)
                      : row_failure(input, rows[index], completion.status());
  });
}

}  // namespace anyslot::cli
