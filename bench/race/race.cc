#include "race.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <numeric>
#include <utility>

#include "bench/serve/random.h"

namespace anyslot::bench {

namespace {

namespace asio = boost::asio;

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// A random order that differs from the old one where there is one.
std::vector<size_t> new_order(size_t count, uint64_t seed) {
  std::vector<size_t> order(count);
  std::iota(order.begin(), order.end(), 0);
  RandomStream random(seed, 0);
  random.shuffle(order);
  if (std::ranges::is_sorted(order) && count > 0)
    std::rotate(order.begin(), order.end() - 1, order.end());
  return order;
}

/// The question behind the documents in this order.
WorkloadRequest request_of(const RacePlan& plan, const std::vector<size_t>& order, int max_tokens) {
  WorkloadRequest request;
  for (const size_t number : order) request.documents.push_back(plan.documents[number]);
  request.messages.push_back({ChatRole::kUser, plan.question, {}});
  request.max_tokens = max_tokens;
  return request;
}

/// One request of a lane and what has come of it.
class LaneRun {
 public:
  LaneRun(const Lane& lane, double timeout_seconds) : lane_(lane), timeout_(timeout_seconds) {
    run_.name = lane.name;
    run_.note = lane.note;
    run_.reuse = lane.reuse;
  }

  Expected<RaceRun> ask(const WorkloadRequest& request, const std::vector<size_t>& order) {
    asio::io_context loop;
    const auto stay = asio::make_work_guard(loop);  // events come from other threads
    const auto limit =
        std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(timeout_));
    started_ = Clock::now();
    const std::unique_ptr<Flight> flight =
        lane_.target->start(loop, request, [this](const TargetEvent& event) { take(event); });
    while (!last_) {
      if (loop.run_one_for(limit) == 0) {
        return failed(fmt::format("nothing came for {:g} s (--timeout)", timeout_));
      }
    }
    if (last_->failure != Failure::kNone) return failed(last_->error);
    if (!run_.first_token_ms) run_.total_ms = ms_between(started_, last_->at);
    run_.prompt_tokens = last_->prompt_tokens;
    run_.cached_tokens = last_->cached_tokens;
    if (last_->documents.size() == order.size()) {
      for (size_t slot = 0; slot < order.size(); ++slot) {
        const DocumentUsage& usage = last_->documents[slot];
        run_.documents.push_back({order[slot], usage.tokens, usage.cached_tokens});
      }
    }
    return std::move(run_);
  }

 private:
  void take(const TargetEvent& event) {
    if (event.is_output) {
      const double at = ms_between(started_, event.at);
      if (!run_.first_token_ms) run_.first_token_ms = at;
      run_.total_ms = at;
      if (!event.text.empty()) run_.pieces.push_back({at, event.text});
    }
    if (event.last) last_ = event;
  }

  Status failed(const std::string& why) const {
    return {StatusCode::kUnavailable, fmt::format("{}: {}", lane_.name, why)};
  }

  const Lane& lane_;
  double timeout_;
  Clock::time_point started_;
  RaceRun run_;
  std::optional<TargetEvent> last_;
};

}  // namespace

Expected<RacePlan> plan_race(const std::vector<cli::InputRow>& rows, const std::string& name,
                             const RaceChoice& choice) {
  if (choice.index < 1 || static_cast<size_t>(choice.index) > rows.size()) {
    return invalid_argument(fmt::format("--index {}: {} has {} row{}", choice.index, name,
                                        rows.size(), rows.size() == 1 ? "" : "s"));
  }
  const cli::InputRow& row = rows[static_cast<size_t>(choice.index) - 1];
  if (!row.segments.empty()) {
    return invalid_argument(
        fmt::format("{}:{}: a row of segments cannot be raced, its documents have no order to "
                    "change; give documents and a question",
                    name, row.line));
  }
  if (choice.num_documents > static_cast<int>(row.documents.size())) {
    return invalid_argument(
        fmt::format("--documents {}: the row has {}", choice.num_documents, row.documents.size()));
  }
  constexpr int kDefaultAnswerTokens = 64;  // as `anyslot run`
  RacePlan plan;
  plan.question = row.question;
  plan.answers = row.answers;
  for (const Document& document : row.documents) {
    plan.documents.push_back({document.title, document.text, document.id, {}});
  }
  if (choice.num_documents > 0) plan.documents.resize(static_cast<size_t>(choice.num_documents));
  plan.order = new_order(plan.documents.size(), choice.seed);
  plan.max_tokens =
      choice.max_tokens > 0 ? choice.max_tokens : row.max_tokens.value_or(kDefaultAnswerTokens);
  plan.seed = choice.seed;
  plan.cold = choice.cold;
  return plan;
}

Expected<std::vector<RaceRun>> run_race(
    const RacePlan& plan, const std::vector<Lane>& lanes, double timeout_seconds,
    const std::function<void(RaceStage, const Lane&)>& on_stage) {
  if (!plan.cold) {
    std::vector<size_t> old_order(plan.documents.size());
    std::iota(old_order.begin(), old_order.end(), 0);
    for (const Lane& lane : lanes) {
      on_stage(RaceStage::kReadingBefore, lane);
      const Expected<RaceRun> read =
          LaneRun(lane, timeout_seconds).ask(request_of(plan, old_order, 1), old_order);
      if (!read) return read.status();
    }
  }
  std::vector<RaceRun> runs;
  for (const Lane& lane : lanes) {
    on_stage(RaceStage::kRunning, lane);
    Expected<RaceRun> run = LaneRun(lane, timeout_seconds)
                                .ask(request_of(plan, plan.order, plan.max_tokens), plan.order);
    if (!run) return run.status();
    runs.push_back(*std::move(run));
  }
  return runs;
}

}  // namespace anyslot::bench
