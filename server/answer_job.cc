#include "answer_job.h"

#include <chrono>
#include <exception>
#include <utility>

#include "json_body.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr size_t kLargeAnswer = 64 << 10;  // bytes

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

bool shows_something(const Event& event) {
  return !event.text.empty() || !event.logprobs.empty() || event.finish_reason.has_value();
}

}  // namespace

void AnswerJob::start(ServingContext& context, Api api, Call call) {
  const auto job = std::make_shared<AnswerJob>(context, api, std::move(call));
  const std::weak_ptr<AnswerJob> weak = job;
  job->call_.http.place->on_cancel([weak] {
    if (const auto self = weak.lock()) self->guard([&] { self->fail(shutting_down()); });
  });
  job->call_.sink->on_gone([weak] {
    if (const auto self = weak.lock()) self->leave(Outcome::kAborted);
  });
  context.workers([job] {
    if (job->ended_) return;
    job->outcome_ = job->submit();
    job->call_.http.body.clear();  // it may be large, and the answer may take long
    job->context_.io([job] { job->guard([&] { job->begin(); }); });
  });
}

AnswerJob::AnswerJob(ServingContext& context, Api api, Call call)
    : context_(context),
      call_(std::move(call)),
      head_{api, new_answer_id(api),
            std::chrono::duration_cast<std::chrono::seconds>(
                std::chrono::system_clock::now().time_since_epoch())
                .count(),
            context.rules.model} {}

ApiExpected<AnswerJob::Submitted> AnswerJob::submit() const try {
  const auto body = parse_body(call_.http.body.text, context_.limits.max_json_depth);
  if (!body) return body.error();
  auto request = head_.api == Api::kChat ? parse_chat_request(*body, context_.rules)
                                         : parse_completion_request(*body, context_.rules);
  if (!request) return request.error();
  const auto prompt = engine_request(context_.engine, *request, call_.tenant);
  if (!prompt.ok()) return error_of(prompt.status());
  auto stream = context_.engine.submit(*prompt);
  if (!stream.ok()) return error_of(stream.status());
  return Submitted{std::move(*stream), request->sampling.n, request->stream,
                   request->include_usage};
} catch (const std::exception& error) {
  return failure_of(error);
}

void AnswerJob::begin() {
  if (ended_) return outcome_.reset();  // cancels it
  if (!*outcome_) return fail(outcome_->error());
  submitted_ = **std::move(outcome_);
  outcome_.reset();
  const int n = submitted_->num_choices;
  for (int i = 0; i < n; ++i) choices_.emplace_back(head_.api, i);
  last_token_ms_.resize(static_cast<size_t>(n));
  if (submitted_->streams) show_head(n, submitted_->include_usage);
  if (ended_) return;  // the client reads too slowly already
  submitted_->stream.on_ready([self = shared_from_this()] {
    self->context_.io([self] { self->guard([&] { self->drain(); }); });
  });
}

/// The client may be dropped, and this have ended, after any event.
void AnswerJob::show_head(int num_choices, bool include_usage) {
  shows_events_ = true;
  call_.sink->begin_events();
  if (head_.api != Api::kChat) return;
  const auto usage = include_usage ? std::optional(json()) : std::nullopt;
  for (int i = 0; i < num_choices; ++i) {
    call_.sink->send_event(chunk_text(head_, json::array({role_delta(i)}), usage));
  }
}

void AnswerJob::drain() {
  while (!ended_) {
    const std::optional<Event> event = submitted_->stream.try_next();
    if (!event) return;
    take(*event);
  }
}

void AnswerJob::take(const Event& event) {
  observe(event);
  if (event.finish_reason == FinishReason::kError) {
    return fail(error_of(
        Status(event.error_code == StatusCode::kOk ? StatusCode::kInternal : event.error_code,
               event.error)));
  }
  if (event.finish_reason == FinishReason::kCancelled) {
    return fail(shutting_down());
  }
  if (submitted_->streams) {
    send_chunk(event);
  } else {
    choices_[static_cast<size_t>(event.choice)].add(event);
    if (event.last) return send_whole(event.usage);
  }
  if (event.last) leave(Outcome::kOk);
}

void AnswerJob::observe(const Event& event) {
  if (!event.token_ids.empty()) {
    auto& last = last_token_ms_[static_cast<size_t>(event.choice)];
    if (!std::exchange(has_token_, true)) {
      context_.metrics.observe_first_token(seconds_since(call_.http.arrived));
    }
    if (last) context_.metrics.observe_inter_token((event.at_ms - *last) / 1e3);
    last = event.at_ms;
  }
  if (event.last && has_token_) context_.metrics.observe_queue(event.usage.queue_ms / 1e3);
}

void AnswerJob::send_chunk(const Event& event) {
  const bool own_usage_chunk = submitted_->include_usage;
  if (shows_something(event)) {
    const Engine& engine = context_.engine;
    json choice = choices_[static_cast<size_t>(event.choice)].delta(
        event, [&engine](int32_t id) { return engine.token_bytes(id); });
    std::optional<json> usage;
    if (own_usage_chunk) usage = json();
    if (!own_usage_chunk && event.last) usage = usage_json(event.usage);
    call_.sink->send_event(chunk_text(head_, json::array({std::move(choice)}), std::move(usage)));
  }
  if (!event.last) return;
  if (own_usage_chunk) {
    call_.sink->send_event(chunk_text(head_, json::array(), usage_json(event.usage)));
  }
  call_.sink->send_event("[DONE]");
  call_.sink->end_events();
}

std::string AnswerJob::whole_text(const Usage& usage) const {
  const Engine& engine = context_.engine;
  return answer_text(head_, choices_, usage,
                     [&engine](int32_t id) { return engine.token_bytes(id); });
}

// A large one is written by a worker, so that no other connection waits for it.
void AnswerJob::send_whole(const Usage& usage) {
  size_t bytes = 0;
  for (const ChoiceBuilder& choice : choices_) bytes += choice.whole_bytes();
  const auto send = [job = shared_from_this()](HttpReply reply) {
    if (job->ended_) return;
    const Outcome outcome = reply.status == 200 ? Outcome::kOk : Outcome::kError;
    job->call_.sink->reply(std::move(reply));
    job->leave(outcome);
  };
  if (bytes <= kLargeAnswer) {
    HttpReply reply;
    reply.body = whole_text(usage);
    return send(std::move(reply));
  }
  context_.workers([job = shared_from_this(), usage, send] {
    if (job->ended_) return;
    const auto reply = std::make_shared<HttpReply>();
    try {
      reply->body = job->whole_text(usage);
    } catch (const std::exception& error) {
      *reply = error_reply(failure_of(error));
    }
    job->context_.io([job, send, reply] { job->guard([&] { send(std::move(*reply)); }); });
  });
}

void AnswerJob::fail(const ApiError& error) {
  if (shows_events_) {
    call_.sink->send_event(error_body(error));
    call_.sink->send_event("[DONE]");
    call_.sink->end_events();
  } else {
    call_.sink->reply(error_reply(error));
  }
  leave(Outcome::kError);
}

template <typename Work>
void AnswerJob::guard(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (ended_) return;
    try {
      fail(failure_of(error));
    } catch (const std::exception&) {  // not even memory for the error: the sink ends the answer
      leave(Outcome::kError);
    }
  }
}

void AnswerJob::leave(Outcome outcome) {
  if (ended_.exchange(true)) return;
  const auto self = shared_from_this();  // the stream lets go of this
  // The connection holds the place until all is written. When the client leaves, a worker may still
  // be busy with the request.
  if (outcome != Outcome::kAborted || submitted_) call_.http.place.reset();
  context_.metrics.count_request(outcome);
  if (outcome == Outcome::kOk) {
    context_.metrics.observe_request(seconds_since(call_.http.arrived));
  }
  call_.sink->on_gone({});
  submitted_.reset();  // cancels what has not ended
}

}  // namespace anyslot::server
