#include "status_api.h"

#include <utility>

#include "json_body.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

json model_json(const ServingContext& context) {
  const ModelInfo& model = context.engine.model();
  return {{"id", context.rules.model},
          {"object", "model"},
          {"created", context.started},
          {"owned_by", "anyslot"},
          {"max_model_len", model.max_model_len},
          {"default_method", method_name(model.default_method)},
          {"block_trained", model.block_trained}};
}

HttpReply metrics_reply(const ServingContext& context) {
  HttpReply reply;
  reply.content_type = "text/plain; version=0.0.4; charset=utf-8";
  reply.body = context.metrics.text();
  return reply;
}

HttpReply ready_reply(const ServingContext& context, bool draining) {
  if (draining) {
    return error_reply(shutting_down());
  }
  if (context.active.full()) {
    return error_reply({503, "the queue is full", "", "queue_full", {{"Retry-After", "1"}}});
  }
  return json_reply({{"status", "ready"}});
}

}  // namespace

void add_status_routes(Router& router, ServingContext& context, std::function<bool()> draining) {
  router.add({"GET", "/v1/models", false, {}, [&context](const Call& call) {
                call.sink->reply(
                    json_reply({{"object", "list"}, {"data", json::array({model_json(context)})}}));
              }});
  router.add({"GET", "/v1/models/{key}", false, {}, [&context](const Call& call) {
                call.sink->reply(
                    call.key == context.rules.model
                        ? json_reply(model_json(context))
                        : error_reply({404, "the model \"" + call.key + "\" is not served here",
                                       "model", "model_not_found"}));
              }});
  router.add({"GET", "/health", true, {}, [](const Call& call) {
                call.sink->reply(json_reply({{"status", "ok"}}));
              }});
  router.add(
      {"GET", "/ready", true, {}, [&context, draining = std::move(draining)](const Call& call) {
         call.sink->reply(ready_reply(context, draining()));
       }});
  router.add({"GET", "/metrics", true, {}, [&context](const Call& call) {
                call.sink->reply(metrics_reply(context));
              }});
}

}  // namespace anyslot::server
