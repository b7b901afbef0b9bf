#include "driver.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/post.hpp>
#include <utility>

namespace anyslot::bench {

namespace {

constexpr std::chrono::milliseconds kTick{50};

double ms_between(Clock::time_point from, Clock::time_point to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

Clock::duration seconds_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
}

}  // namespace

Driver::Driver(boost::asio::io_context& loop, Target& target, std::vector<WorkloadRequest> requests,
               std::vector<std::optional<double>> start_seconds, const DriverOptions& options,
               Progress& progress)
    : loop_(loop),
      target_(target),
      requests_(std::move(requests)),
      start_seconds_(std::move(start_seconds)),
      options_(options),
      progress_(progress),
      arrival_timer_(loop),
      tick_timer_(loop),
      running_(requests_.size()),
      records_(requests_.size()),
      followers_(requests_.size()) {
  for (size_t i = 0; i < requests_.size(); ++i) {
    if (start_seconds_[i]) {
      arrivals_.push_back(i);
    } else if (requests_[i].follows) {
      followers_[*requests_[i].follows].push_back(i);
    }
  }
  std::ranges::stable_sort(arrivals_, {}, [this](size_t i) { return *start_seconds_[i]; });
}

void Driver::run() {
  begin_ = Clock::now();
  last_end_ = begin_;
  tell_progress();
  boost::asio::post(loop_, [this] {
    tick();
    schedule();
  });
  while (!done() && !stopped_) {
    loop_.restart();
    loop_.run_one();
  }
  arrival_timer_.cancel();
  tick_timer_.cancel();
  loop_.restart();
  loop_.poll();  // lets go of the flights that have ended
}

void Driver::tell_progress() {
  if (!options_.tells_progress) return;
  progress_.update(static_cast<int64_t>(ended_), static_cast<int64_t>(requests_.size()));
}

double Driver::duration_seconds() const {
  return first_start_ ? ms_between(*first_start_, last_end_) / 1e3 : 0;
}

std::vector<RequestRecord> Driver::take_records() {
  std::vector<RequestRecord> records;
  for (std::optional<RequestRecord>& record : records_) {
    if (record) records.push_back(*std::exchange(record, std::nullopt));
  }
  return records;
}

/// Takes in all that have arrived and waits for the next one.
void Driver::schedule() {
  const Clock::time_point now = Clock::now();
  while (next_arrival_ < arrivals_.size()) {
    const Clock::time_point at = begin_ + seconds_of(*start_seconds_[arrivals_[next_arrival_]]);
    if (at > now) {
      arrival_timer_.expires_at(at);
      arrival_timer_.async_wait([this](const boost::system::error_code& error) {
        if (!error) schedule();
      });
      break;
    }
    due_.push_back(arrivals_[next_arrival_++]);
  }
  start_due();
}

void Driver::start_due() {
  const auto limit = static_cast<size_t>(options_.max_concurrency);
  while (!stopped_ && !due_.empty() && (limit == 0 || in_flight_ < limit)) {
    const size_t index = due_.front();
    due_.pop_front();
    start(index);
  }
}

void Driver::start(size_t index) {
  complete_conversation(index);
  Running& running = running_[index].emplace();
  running.started = running.latest_output = running.latest_sign = Clock::now();
  if (!first_start_) first_start_ = running.started;
  running.record.index = index;
  running.record.started_ms = ms_between(*first_start_, running.started);
  ++in_flight_;
  running.flight = target_.start(loop_, requests_[index],
                                 [this, index](const TargetEvent& event) { take(index, event); });
}

/// Puts what was said before in front of a later question of a conversation.
void Driver::complete_conversation(size_t index) {
  WorkloadRequest& request = requests_[index];
  if (!request.follows) return;
  const WorkloadRequest& before = requests_[*request.follows];
  std::vector<WorkloadMessage> messages = before.messages;
  messages.push_back({ChatRole::kAssistant, records_[*request.follows]->text, {}});
  messages.insert(messages.end(), request.messages.begin(), request.messages.end());
  request.messages = std::move(messages);
  request.documents = before.documents;
}

void Driver::take(size_t index, const TargetEvent& event) {
  if (!running_[index]) return;
  Running& running = *running_[index];
  RequestRecord& record = running.record;
  running.latest_sign = Clock::now();
  record.text += event.text;
  if (event.is_output) {
    if (!record.has_first_token) {
      record.has_first_token = true;
      record.ttft_ms = ms_between(running.started, event.at);
    } else {
      record.itl_ms.push_back(ms_between(running.latest_output, event.at));
    }
    running.latest_output = event.at;
    ++running.pieces;
  }
  if (!event.last) return;
  if (!record.has_first_token) running.latest_output = event.at;
  record.prompt_tokens = event.prompt_tokens;
  record.cached_tokens = event.cached_tokens;
  record.output_tokens =
      event.output_tokens > 0 ? event.output_tokens : static_cast<int64_t>(running.pieces);
  finish(index, event.failure, event.error);
}

void Driver::finish(size_t index, Failure failure, const std::string& error) {
  Running running = *std::exchange(running_[index], std::nullopt);
  RequestRecord& record = running.record;
  record.failure = failure;
  record.error = error;
  record.e2el_ms =
      ms_between(running.started, failure == Failure::kNone ? running.latest_output : Clock::now());
  last_end_ = std::max(last_end_, Clock::now());
  records_[index] = std::move(record);
  --in_flight_;
  ++ended_;
  // The flight is on the call stack; it goes when this has returned.
  boost::asio::post(loop_, [flight = std::shared_ptr<Flight>(std::move(running.flight))] {});
  if (stopped_) return;
  release_followers(index);
  tell_progress();
  boost::asio::post(loop_, [this] { start_due(); });
}

/// What follows a request that failed fails as it did.
void Driver::release_followers(size_t index) {
  for (const size_t follower : followers_[index]) {
    if (records_[index]->ok()) {
      due_.push_back(follower);
      continue;
    }
    RequestRecord record;
    record.index = follower;
    record.started_ms = records_[index]->started_ms + records_[index]->e2el_ms;
    record.failure = records_[index]->failure;
    record.error = fmt::format("the question before it failed: {}", records_[index]->error);
    records_[follower] = std::move(record);
    ++ended_;
    release_followers(follower);
  }
}

void Driver::tick() {
  check_limits();
  if (progress_.stopped()) return cancel_all();
  tick_timer_.expires_after(kTick);
  tick_timer_.async_wait([this](const boost::system::error_code& error) {
    if (!error) tick();
  });
}

void Driver::check_limits() {
  const Clock::duration limit = seconds_of(options_.timeout_seconds);
  const Clock::time_point now = Clock::now();
  for (size_t i = 0; i < running_.size(); ++i) {
    if (!running_[i] || now - running_[i]->latest_sign < limit) continue;
    finish(i, Failure::kStalled,
           fmt::format("nothing came for {:g} s (--timeout)", options_.timeout_seconds));
  }
}

void Driver::cancel_all() {
  stopped_ = true;
  for (size_t i = 0; i < running_.size(); ++i) {
    if (running_[i]) finish(i, Failure::kCancelled, "the run was stopped");
  }
}

}  // namespace anyslot::bench
