#include "anthropic_count.h"

#include <cstdint>
#include <utility>

#include "anthropic_answer.h"
#include "anthropic_request.h"
#include "engine_request.h"
#include "json_body.h"
#include "worker_reply.h"

namespace anyslot::server {

namespace {

ApiExpected<int64_t> count_tokens(const ServingContext& context, const Call& call) {
  const auto body = parse_body(call.http.body.text, context.limits.max_json_depth);
  if (!body) return body.error();
  const auto request = parse_count_request(*body, context.rules);
  if (!request) return request.error();
  const auto prompt = engine_request(context.engine, *request, call.tenant);
  if (!prompt.ok()) return error_of(prompt.status());
  int64_t count = 0;
  for (const Segment& segment : prompt->segments) {
    const auto tokens = context.engine.tokenize(segment.text, segment.markup);
    if (!tokens.ok()) return error_of(tokens.status());
    count += static_cast<int64_t>(tokens->size());
  }
  return count;
}

}  // namespace

void add_count_route(Router& router, ServingContext& context) {
  const auto answer = [&context](const Call& call) {
    const auto count = count_tokens(context, call);
    return count ? json_reply({{"input_tokens", *count}}) : error_reply(count.error());
  };
  router.add(
      {"POST",
       "/v1/messages/count_tokens",
       false,
       {"beta"},
       [&context, answer](Call call) { reply_from_worker(context, std::move(call), answer); },
       /*takes_body=*/true,
       anthropic_format().error_body});
}

}  // namespace anyslot::server
