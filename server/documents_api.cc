#include "documents_api.h"

#include <functional>
#include <utility>

#include "api_keys.h"
#include "json_body.h"
#include "registration.h"
#include "worker_reply.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

std::string salt_of(const Call& call) {
  const auto salt = call.query.find("cache_salt");
  return tenant_salt(call.tenant, salt == call.query.end() ? "" : salt->second);
}

using Change = Status (Engine::*)(const std::string&, const std::string&);

std::function<void(Call)> changing(ServingContext& context, Change change, json result) {
  return [&context, change, result = std::move(result)](Call call) {
    reply_from_worker(context, std::move(call), [&context, change, result](const Call& of) {
      const Status status = (context.engine.*change)(of.key, salt_of(of));
      if (!status.ok()) return error_reply(error_of(status));
      json body = result;
      body["key"] = of.key;
      body["object"] = "document";
      return json_reply(body);
    });
  };
}

}  // namespace

void add_documents_routes(Router& router, ServingContext& context) {
  const std::vector<std::string> salt = {"cache_salt"};
  router.add({"POST",
              "/v1/documents",
              false,
              {},
              [&context](Call call) { Registration::start(context, std::move(call)); },
              /*takes_body=*/true});
  router.add({"GET", "/v1/documents", false, salt, [&context](Call call) {
                reply_from_worker(context, std::move(call), [&context](const Call& of) {
                  const auto documents = context.engine.documents(salt_of(of));
                  if (!documents.ok()) return error_reply(error_of(documents.status()));
                  json list = json::array();
                  for (const auto& document : *documents) {
                    list.push_back(cached_document_json(document));
                  }
                  return json_reply({{"object", "list"}, {"data", std::move(list)}});
                });
              }});
  router.add({"POST", "/v1/documents/{key}/pin", false, salt,
              changing(context, &Engine::pin_document, {{"pinned", true}})});
  router.add({"POST", "/v1/documents/{key}/unpin", false, salt,
              changing(context, &Engine::unpin_document, {{"pinned", false}})});
  router.add({"DELETE", "/v1/documents/{key}", false, salt,
              changing(context, &Engine::remove_document, {{"deleted", true}})});
}

}  // namespace anyslot::server
