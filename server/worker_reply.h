#pragma once

#include <atomic>
#include <exception>
#include <memory>
#include <utility>

#include "errors.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// A request that reply_from_worker answers.
struct SideJob {
  Call call;
  HttpReply reply;
  std::atomic<bool> gone{false};  // written on the I/O thread
};

/// Sends what `work(call)` returns, an HttpReply, from a worker: it takes long or waits for the
/// engine. Answers 503 or 500 when it throws. Does nothing for a client that has left meanwhile.
template <typename Work>
void reply_from_worker(ServingContext& context, Call call, Work work) {
  const auto job = std::make_shared<SideJob>();
  job->call = std::move(call);
  job->call.sink->on_gone([weak = std::weak_ptr(job)] {
    if (const auto left = weak.lock()) left->gone = true;
  });
  context.aside([&context, work, job] {
    if (job->gone) return;
    try {
      job->reply = work(job->call);
    } catch (const std::exception& error) {
      job->reply = error_reply(failure_of(error));
    }
    job->call.http.body.clear();
    context.io([job] {
      job->call.sink->on_gone({});
      job->call.http.place.reset();  // the connection holds it until all is written
      job->call.sink->reply(std::move(job->reply));
    });
  });
}

}  // namespace anyslot::server
