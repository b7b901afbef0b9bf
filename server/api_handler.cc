#include "api_handler.h"

#include <boost/beast/core/string.hpp>
#include <utility>

#include "answer_routes.h"
#include "documents_api.h"
#include "page_api.h"
#include "status_api.h"
#include "text_api.h"

namespace anyslot::server {

namespace {

ApiError foreign_host(const std::string& host) {
  return {421,
          "the request is for \"" + loggable(host) +
              "\", which is not this server: without keys, on a loopback address, it is localhost, "
              "127.0.0.1, [::1] or what --host says; use one of these, also in a proxy's Host "
              "header, or give the server an --api-key-file",
          "", "foreign_host"};
}

/// Browsers tell which of their requests a page of another site made; old ones, and on plain HTTP
/// all, only its origin. Without keys such a page could act for the user in front of it, even where
/// it cannot read the answer.
bool is_cross_site(const RequestHead& head) {
  if (!head.fetch_site.empty())
    return head.fetch_site != "same-origin" && head.fetch_site != "none";
  if (head.origin.empty()) return false;
  const size_t host = head.origin.find("://");
  return host == std::string::npos ||
         !boost::beast::iequals(head.origin.substr(host + 3), head.host);
}

ApiError cross_site(const RequestHead& head) {
  return {403,
          "a web page of another site (" +
              (head.fetch_site.empty() ? "Origin: " + loggable(head.origin)
                                       : "Sec-Fetch-Site: " + loggable(head.fetch_site)) +
              ") sent this request; without keys only this server's own pages may, so give the "
              "server an --api-key-file",
          "", "cross_site"};
}

/// A browser sends what is declared as JSON to another site only when that site allows it, unlike
/// plain text and forms.
std::optional<ApiError> check_body(const RequestHead& head, const Route& route) {
  if (!head.has_body) return std::nullopt;
  if (!route.takes_body) {
    return ApiError{400, "this request takes no body; parameters go into the URL", "",
                    "unexpected_body"};
  }
  std::string type = head.content_type.substr(0, head.content_type.find(';'));
  while (type.ends_with(' ') || type.ends_with('\t')) type.pop_back();
  if (boost::beast::iequals(type, "application/json")) return std::nullopt;
  return ApiError{415,
                  (type.empty() ? "the body has no Content-Type"
                                : "the Content-Type is \"" + loggable(type) + "\"") +
                      "; send \"Content-Type: application/json\" (with curl: -H 'Content-Type: "
                      "application/json')",
                  "", "unsupported_media_type"};
}

}  // namespace

ApiHandler::ApiHandler(ServingContext& context, ApiKeys keys, Logger log)
    : context_(context), keys_(std::move(keys)), log_(std::move(log)) {
  add_answer_routes(router_, context);
  add_documents_routes(router_, context);
  add_text_routes(router_, context);
  add_status_routes(router_, context, [this] { return draining_; });
  add_page_routes(router_, keys_.required());
}

ApiExpected<ApiHandler::Known> ApiHandler::check(const RequestHead& head) const {
  if (!head.host.empty() && !hosts_.has(head.host)) return foreign_host(head.host);
  auto match = router_.find(head.method, head.target);
  const bool open = match && match->route->open;
  auto tenant = open ? "" : keys_.tenant(head.authorization);
  if (!tenant) {
    return ApiError{401,
                    head.authorization.empty()
                        ? "no API key; send \"Authorization: Bearer KEY\" or \"X-API-Key: KEY\""
                        : "the API key is wrong",
                    "",
                    "invalid_api_key",
                    {{"WWW-Authenticate", "Bearer"}}};
  }
  if (!match) return match.error();
  if (auto error = check_body(head, *match->route)) return *std::move(error);
  if (open) return Known{*std::move(match), ""};
  if (!keys_.required() && is_cross_site(head)) return cross_site(head);
  if (draining_) return shutting_down();
  return Known{*std::move(match), *std::move(tenant)};
}

Admission ApiHandler::admit(const RequestHead& head) {
  const auto known = check(head);
  if (!known) return {error_reply(known.error())};
  if (!known->match.route->takes_body) return {};
  auto place = context_.active.enter();
  if (place == nullptr) return {error_reply(queue_full(context_.active.limit()))};
  return {std::nullopt, std::move(place)};
}

void ApiHandler::handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) {
  auto known = check(request.head);  // it may be draining by now
  if (!known) return sink->reply(error_reply(known.error()));
  Call call{std::move(request), std::move(known->tenant), std::move(known->match.key),
            std::move(known->match.query), std::move(sink)};
  known->match.route->handler(std::move(call));
}

std::string ApiHandler::error_body(const RequestHead& head, const ApiError& error) const {
  return router_.error_format(head.target)(error);
}

void ApiHandler::answered(const RequestHead& head, int status) {
  context_.metrics.count_reply(status);
  // Not the query: a salt is what keeps others away from a tenant's documents.
  const std::string path = head.target.substr(0, head.target.find('?'));
  log_->info("{} {} {}", loggable(head.method), loggable(path), status);
}

}  // namespace anyslot::server
