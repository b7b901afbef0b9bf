#pragma once

#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "errors.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Sends what `work(call)` returns, an HttpReply, from a worker: it takes long or waits for the
/// engine. Answers 500 when it throws.
template <typename Work>
void reply_from_worker(ServingContext& context, Call call, Work work) {
  context.workers([&context, work, shared = std::make_shared<Call>(std::move(call))] {
    HttpReply reply;
    try {
      reply = work(*shared);
    } catch (const std::exception& error) {
      reply = error_reply(internal_error_of(error));
    }
    context.io([shared, reply = std::move(reply)] { shared->sink->reply(reply); });
  });
}

}  // namespace anyslot::server
