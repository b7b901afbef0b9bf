#include "answer_job.h"

#include <chrono>
#include <exception>
#include <utility>

#include "engine_request.h"
#include "json_body.h"

namespace anyslot::server {

namespace {

constexpr size_t kLargeAnswer = 64 << 10;  // bytes

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

}  // namespace

void AnswerJob::start(ServingContext& context, const AnswerFormat& format, Call call) {
  const auto job = std::make_shared<AnswerJob>(context, format, std::move(call));
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

AnswerJob::AnswerJob(ServingContext& context, const AnswerFormat& format, Call call)
    : context_(context), call_(std::move(call)), format_(format) {}

ApiExpected<AnswerJob::Submitted> AnswerJob::submit() const try {
  const auto body = parse_body(call_.http.body.text, context_.limits.max_json_depth);
  if (!body) return body.error();
  auto request = format_.parse(*body, context_.rules);
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
  last_token_ms_.resize(static_cast<size_t>(submitted_->num_choices));
  writer_ =
      format_.open({context_.rules.model, unix_seconds(),
                    [&engine = context_.engine](int32_t id) { return engine.token_bytes(id); },
                    submitted_->num_choices, submitted_->include_usage});
  if (submitted_->streams) {
    shows_events_ = true;
    call_.sink->begin_events();
    writer_->begin(*call_.sink);
  }
  if (ended_) return;  // the client reads too slowly already
  submitted_->stream.on_ready([self = shared_from_this()] {
    self->context_.io([self] { self->guard([&] { self->drain(); }); });
  });
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
    writer_->send(event, *call_.sink);
    if (event.last) call_.sink->end_events();
  } else {
    writer_->add(event);
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

// A large one is written by a worker, so that no other connection waits for it.
void AnswerJob::send_whole(const Usage& usage) {
  const auto send = [job = shared_from_this()](HttpReply reply) {
    if (job->ended_) return;
    const Outcome outcome = reply.status == 200 ? Outcome::kOk : Outcome::kError;
    job->call_.sink->reply(std::move(reply));
    job->leave(outcome);
  };
  if (writer_->whole_bytes(usage) <= kLargeAnswer) {
    HttpReply reply;
    reply.body = writer_->whole(usage);
    return send(std::move(reply));
  }
  context_.workers([job = shared_from_this(), usage, send] {
    if (job->ended_) return;
    const auto reply = std::make_shared<HttpReply>();
    try {
      reply->body = job->writer_->whole(usage);
    } catch (const std::exception& error) {
      *reply = error_reply(failure_of(error));
    }
    job->context_.io([job, send, reply] { job->guard([&] { send(std::move(*reply)); }); });
  });
}

void AnswerJob::fail(const ApiError& error) {
  if (shows_events_) {
    writer_->send_error(error, *call_.sink);
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
