#include "serve.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "driver.h"

namespace anyslot::bench {

namespace {

bool draws_more(WorkloadKind kind) {
  return kind == WorkloadKind::kRandom || kind == WorkloadKind::kLongDocument;
}

struct Phases {
  std::vector<WorkloadRequest> warmup;
  std::vector<WorkloadRequest> measured;
};

/// The warm-up asks for other documents of the same pool; of files and conversations, which have no
/// others to spare, it asks what comes first.
Expected<Phases> make_phases(const ServeOptions& options, const TextTraits& traits) {
  const bool draws = draws_more(options.workload.kind);
  const int more = draws ? options.num_warmups : 0;
  Expected<std::vector<WorkloadRequest>> requests =
      make_workload(options.workload, options.num_prompts + more, options.seed, traits);
  if (!requests) return requests.status();
  Phases phases;
  auto middle = requests->begin();
  for (int i = 0; i < options.num_warmups && middle != requests->end(); ++middle) {
    if (middle->follows) break;
    phases.warmup.push_back(*middle);
    ++i;
  }
  if (!draws) middle = requests->begin();
  phases.measured.assign(middle, requests->end());
  return phases;
}

std::vector<std::optional<double>> start_times(const std::vector<WorkloadRequest>& requests,
                                               const ServeOptions& options) {
  const auto by_rate = [](const WorkloadRequest& request) {
    return !request.follows && !request.arrival_seconds;
  };
  const std::vector<double> times =
      arrival_times(options.arrivals, static_cast<size_t>(std::ranges::count_if(requests, by_rate)),
                    options.seed);
  std::vector<std::optional<double>> starts;
  size_t next = 0;
  for (const WorkloadRequest& request : requests) {
    if (by_rate(request)) {
      starts.emplace_back(times[next++]);
    } else {
      starts.push_back(request.arrival_seconds);
    }
  }
  return starts;
}

void score(const std::vector<WorkloadRequest>& requests, std::vector<RequestRecord>& records) {
  for (RequestRecord& record : records) {
    const WorkloadRequest& request = requests[record.index];
    if (!record.ok() || request.answers.empty()) continue;
    record.scores = score_output(record.text, request.answers, request.metric, request.all_classes);
  }
}

void warm_up(std::vector<WorkloadRequest> requests, const ServeOptions& options, Target& target,
             Progress& progress) {
  if (requests.empty()) return;
  for (WorkloadRequest& request : requests) request.arrival_seconds = 0;
  std::vector<std::optional<double>> starts(requests.size(), 0);
  boost::asio::io_context loop;
  Driver driver(loop, target, std::move(requests), std::move(starts),
                {options.max_concurrency, options.timeout_seconds, false}, progress);
  driver.run();
}

ServeResult measure(const std::vector<WorkloadRequest>& requests, const ServeOptions& options,
                    Target& target, Progress& progress) {
  ServeResult result;
  RunFacts facts;
  facts.goodput = options.goodput;
  facts.before = target.counters();
  {
    boost::asio::io_context loop;
    target.watch_kv(loop);
    Driver driver(loop, target, requests, start_times(requests, options),
                  {options.max_concurrency, options.timeout_seconds, true}, progress);
    driver.run();
    facts.peak_kv = target.peak_kv();
    facts.duration_s = driver.duration_seconds();
    result.stopped = driver.stopped();
    result.records = driver.take_records();
  }
  facts.after = target.counters();
  score(requests, result.records);
  result.metrics = summarize(result.records, facts);
  return result;
}

}  // namespace

Expected<ServeResult> run_serve(const ServeOptions& options, Target& target,
                                Progress& progress) try {
  const Expected<TextTraits> traits = target.text_traits();
  if (!traits) return traits.status();
  Expected<Phases> phases = make_phases(options, *traits);
  if (!phases) return phases.status();
  warm_up(std::move(phases->warmup), options, target, progress);
  return measure(phases->measured, options, target, progress);
} catch (const std::exception& error) {  // of Asio or the JSON library
  return internal_error(error.what());
}

}  // namespace anyslot::bench
