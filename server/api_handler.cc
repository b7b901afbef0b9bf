#include "api_handler.h"

#include <boost/beast/core/string.hpp>
#include <utility>

#include "answer_job.h"
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

/// Browsers tell which of their requests a page of another site made. Without keys such a page
/// could act for the user in front of it, even where it cannot read the answer.
bool is_cross_site(const RequestHead& head) {
  return !head.fetch_site.empty() && head.fetch_site != "same-origin" && head.fetch_site != "none";
}

ApiError cross_site(const RequestHead& head) {
  return {403,
          "a web page of another site (Sec-Fetch-Site: " + loggable(head.fetch_site) +
              ") sent this request; without keys only this server's own pages may, so give the "
              "server an --api-key-file",
          "", "cross_site"};
}

/// A browser sends what is declared as JSON to another site only when that site allows it, unlike
/// plain text and forms.
std::optional<ApiError> check_content_type(const RequestHead& head) {
  if (!head.has_body || head.method != "POST") return std::nullopt;
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
  const auto answer_at = [this, &context](const std::string& path, Api api) {
    router_.add({"POST",
                 path,
                 false,
                 {},
                 [&context, api](Call call) { AnswerJob::start(context, api, std::move(call)); },
                 /*counts=*/true});
  };
  answer_at("/v1/completions", Api::kCompletions);
  answer_at("/v1/chat/completions", Api::kChat);
  add_documents_routes(router_, context);
  add_text_routes(router_, context);
  add_status_routes(router_, context, [this] { return draining_; });
  add_page_routes(router_, keys_.required());
}

ApiExpected<ApiHandler::Admitted> ApiHandler::admit(const RequestHead& head) const {
  if (!head.host.empty() && !hosts_.has(head.host)) return foreign_host(head.host);
  auto match = router_.find(head.method, head.target);
  if (match && match->route->open) return Admitted{*std::move(match), ""};
  auto tenant = keys_.tenant(head.authorization);
  if (!tenant) {
    return ApiError{401,
                    head.authorization.empty() ? "no API key; send \"Authorization: Bearer KEY\""
                                               : "the API key is wrong",
                    "",
                    "invalid_api_key",
                    {{"WWW-Authenticate", "Bearer"}}};
  }
  if (!match) return match.error();
  if (!keys_.required() && is_cross_site(head)) return cross_site(head);
  if (auto error = check_content_type(head)) return *std::move(error);
  if (draining_) return ApiError{503, "the server is shutting down", "", "shutting_down"};
  if (match->route->counts && context_.active.full()) return queue_full(context_.active.limit());
  return Admitted{*std::move(match), *std::move(tenant)};
}

std::optional<HttpReply> ApiHandler::refuse(const RequestHead& head) {
  const auto admitted = admit(head);
  if (!admitted) return error_reply(admitted.error());
  return std::nullopt;
}

void ApiHandler::handle(HttpRequest request, std::shared_ptr<ResponseSink> sink) {
  auto admitted = admit(request.head);
  if (!admitted) return sink->reply(error_reply(admitted.error()));
  Call call{std::move(request), std::move(admitted->tenant), std::move(admitted->match.key),
            std::move(admitted->match.query), std::move(sink)};
  admitted->match.route->handler(std::move(call));
}

void ApiHandler::answered(const RequestHead& head, int status) {
  context_.metrics.count_reply(status);
  // Not the query: a salt is what keeps others away from a tenant's documents.
  const std::string path = head.target.substr(0, head.target.find('?'));
  log_->info("{} {} {}", loggable(head.method), loggable(path), status);
}

}  // namespace anyslot::server
