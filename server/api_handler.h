#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api_keys.h"
#include "http_exchange.h"
#include "log.h"
#include "own_hosts.h"
#include "router.h"
#include "serving_context.h"

namespace anyslot::server {

/// Lets requests in, by path and key, and hands them to their handlers.
class ApiHandler : public RequestHandler {
 public:
  ApiHandler(ServingContext& context, ApiKeys keys, Logger log);

  /// For a server without keys that only this machine reaches: requests must be meant for it.
  void restrict_hosts(OwnHosts hosts) { hosts_ = std::move(hosts); }

  /// From now on only /health, /ready, /metrics and the page are answered.
  void drain() { draining_ = true; }

  Admission admit(const RequestHead& head) override;
  void handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) override;
  std::string error_body(const RequestHead& head, const ApiError& error) const override;
  void answered(const RequestHead& head, int status) override;

 private:
  struct Known {
    RouteMatch match;
    std::string tenant;
  };
  ApiExpected<Known> check(const RequestHead& head) const;

  ServingContext& context_;
  ApiKeys keys_;
  OwnHosts hosts_;
  Logger log_;
  Router router_;
  bool draining_ = false;
};

}  // namespace anyslot::server
