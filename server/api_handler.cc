#include "api_handler.h"

#include <utility>

#include "answer_job.h"
#include "documents_api.h"
#include "status_api.h"
#include "text_api.h"

namespace anyslot::server {

ApiHandler::ApiHandler(ServingContext& context, ApiKeys keys, Logger log)
    : context_(context), keys_(std::move(keys)), log_(std::move(log)) {
  router_.add({"POST", "/v1/completions", false, {}, [&context](Call call) {
                 AnswerJob::start(context, Api::kCompletions, std::move(call));
               }});
  router_.add({"POST", "/v1/chat/completions", false, {}, [&context](Call call) {
                 AnswerJob::start(context, Api::kChat, std::move(call));
               }});
  add_documents_routes(router_, context);
  add_text_routes(router_, context);
  add_status_routes(router_, context, [this] { return draining_; });
}

ApiExpected<ApiHandler::Admitted> ApiHandler::admit(const RequestHead& head) const {
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
  if (draining_) return ApiError{503, "the server is shutting down", "", "shutting_down"};
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
