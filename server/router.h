#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "errors.h"
#include "http_exchange.h"

namespace anyslot::server {

/// A request that was found to be allowed, and what its handler needs of it.
struct Call {
  HttpRequest http;
  std::string tenant;  // salt of the API key; empty: there are no keys
  std::string key;     // what stood for {key} in the path
  std::map<std::string, std::string> query;
  std::shared_ptr<ResponseSink> sink;
};

struct Route {
  std::string method;
  std::string path;                     // "/v1/documents/{key}/pin"
  bool open = false;                    // needs no API key, and takes any parameters
  std::vector<std::string> query = {};  // the parameters that it knows
  std::function<void(Call)> handler;
  /// Takes a body of JSON. It then has a place among the requests that the server works on, or is
  /// answered with 429.
  bool takes_body = false;
  ErrorFormat error_body = openai_error_body;
};

/// A route with what the target gave for it.
struct RouteMatch {
  const Route* route = nullptr;
  std::string key;
  std::map<std::string, std::string> query;
};

class Router {
 public:
  void add(Route route) { routes_.push_back(std::move(route)); }

  /// A route for GET is one for HEAD. Fails with 404 for an unknown path, 405 for a method that the
  /// path does not take, 400 for an unknown or broken parameter. The match is valid as long as no
  /// route is added.
  ApiExpected<RouteMatch> find(const std::string& method, std::string_view target) const;
  /// How errors are told at a path, whatever the method; as OpenAI does where there is nothing.
  ErrorFormat error_format(std::string_view target) const;

 private:
  std::vector<Route> routes_;
};

}  // namespace anyslot::server
