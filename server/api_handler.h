#pragma once

#include <memory>
#include <optional>

#include "api_keys.h"
#include "http_exchange.h"
#include "log.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Lets requests in, by path and key, and hands them to their handlers.
class ApiHandler : public RequestHandler {
 public:
  ApiHandler(ServingContext& context, ApiKeys keys, Logger log);

  /// From now on only /health, /ready and /metrics are answered.
  void drain() { draining_ = true; }

  std::optional<HttpReply> refuse(const RequestHead& head) override;
  void handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) override;
  void answered(const RequestHead& head, int status) override;

 private:
  struct Admitted {
    RouteMatch match;
    std::string tenant;
  };
  ApiExpected<Admitted> admit(const RequestHead& head) const;

  ServingContext& context_;
  ApiKeys keys_;
  Logger log_;
  Router router_;
  bool draining_ = false;
};

}  // namespace anyslot::server
