#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <utility>

#include "errors.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// A request that reply_from_worker answers.
struct SideJob {
  Call call;
  HttpReply reply;
  std::optional<uint64_t> active_id;
  std::atomic<bool> gone{false};  // written on the I/O thread
};

/// Sends what `work(call)` returns, an HttpReply, from a worker: it takes long or waits for the
/// engine. Answers 503 or 500 when it throws. Does nothing for a client that has left meanwhile.
/// `counts`: as in its Route.
template <typename Work>
void reply_from_worker(ServingContext& context, Call call, Work work, bool counts = false) {
  const auto job = std::make_shared<SideJob>();
  job->call = std::move(call);
  if (counts) job->active_id = context.active.enter([] {});  // it ends by itself
  job->call.sink->on_gone([weak = std::weak_ptr(job)] {
    if (const auto left = weak.lock()) left->gone = true;
  });
  context.side_work.enter([&context, work, job] {
    context.workers([&context, work, job] {
      try {
        if (!job->gone) job->reply = work(job->call);
      } catch (const std::exception& error) {
        job->reply = error_reply(failure_of(error));
      }
      context.io([&context, job] {
        context.side_work.leave();
        if (job->active_id) context.active.leave(*job->active_id);
        job->call.sink->on_gone({});
        job->call.sink->reply(std::move(job->reply));
      });
    });
  });
}

}  // namespace anyslot::server
