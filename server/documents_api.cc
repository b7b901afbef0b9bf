#include "documents_api.h"

#include <exception>
#include <memory>
#include <utility>

#include "api_keys.h"
#include "document_fields.h"
#include "json_body.h"
#include "worker_reply.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

json document_json(const CachedDocument& document) {
  return {
      {"key", document.key},
      {"object", "document"},
      {"id", document.id.empty() ? json() : json(document.id)},
      {"tokens", document.tokens},
      {"bytes", document.bytes},
      {"hits", document.hits},
      {"age_seconds", document.age_seconds},
      {"state", document.encoding ? "encoding" : "ready"},
      {"pinned", document.pinned},
      {"ttl_left_seconds", document.ttl_left_seconds ? json(*document.ttl_left_seconds) : json()}};
}

/// Registers the documents of one request, all at once, and answers when the last one is ready.
class Registration : public std::enable_shared_from_this<Registration> {
 public:
  Registration(ServingContext& context, Call call) : context_(context), call_(std::move(call)) {}

  /// I/O thread.
  void enter() {
    const std::weak_ptr<Registration> weak = weak_from_this();
    active_id_ = context_.active.enter([weak] {
      if (const auto self = weak.lock()) {
        self->finish(error_reply({503, "the server is shutting down", "", "shutting_down"}));
      }
    });
  }

  /// Worker.
  void run() try {
    auto segments = parse();
    if (!segments) return post(error_reply(segments.error()));
    if (segments->empty()) return post(json_reply({{"object", "list"}, {"data", json::array()}}));
    documents_.resize(segments->size());
    left_ = segments->size();
    for (size_t i = 0; i < segments->size(); ++i) {
      context_.engine.register_document(
          (*segments)[i], options_,
          [self = shared_from_this(), i, io = context_.io](Expected<CachedDocument> document) {
            io([self, i, document = std::move(document)] { self->add(i, document); });
          });
    }
  } catch (const std::exception& error) {
    post(error_reply(internal_error_of(error)));
  }

 private:
  ApiExpected<std::vector<Segment>> parse() {
    const auto body = parse_body(call_.http.body, context_.limits.max_json_depth);
    if (!body) return body.error();
    RequestFields fields(*body, "");
    if (fields.find("model") != nullptr) check_model(fields, context_.rules.model);
    fields.require("documents");
    const auto documents = read_documents(fields, "documents", context_.rules.max_documents);
    options_.method = read_method(fields);
    options_.cache_salt = tenant_salt(call_.tenant, fields.string("cache_salt").value_or(""));
    if (auto error = fields.finish()) return *std::move(error);
    auto segments = document_segments(context_.engine, documents);
    if (!segments.ok()) return error_of(segments.status());
    return *std::move(segments);
  }

  void post(HttpReply reply) {
    context_.io([self = shared_from_this(), reply = std::move(reply)] { self->finish(reply); });
  }

  void add(size_t index, const Expected<CachedDocument>& document) {
    if (document.ok()) {
      documents_[index] = document_json(*document);
    } else if (!failed_) {
      ApiError error = error_of(document.status());
      const std::string name = "documents[" + std::to_string(index) + "]";
      if (error.param != name) error.message = name + ": " + error.message;
      error.param = name;
      failed_ = std::move(error);
    }
    if (--left_ > 0 || ended_) return;
    finish(failed_ ? error_reply(*failed_)
                   : json_reply({{"object", "list"}, {"data", documents_}}));
  }

  void finish(const HttpReply& reply) {
    if (std::exchange(ended_, true)) return;
    context_.active.leave(active_id_);
    call_.sink->reply(reply);
    call_.sink.reset();
  }

  ServingContext& context_;  // perhaps gone once this has ended
  Call call_;
  uint64_t active_id_ = 0;
  DocumentOptions options_;
  std::vector<json> documents_;
  size_t left_ = 0;
  std::optional<ApiError> failed_;
  bool ended_ = false;
};

void register_documents(ServingContext& context, Call call) {
  if (context.active.full()) {
    call.sink->reply(error_reply({429,
                                  "the server has no room for more requests; try again soon",
                                  "",
                                  "queue_full",
                                  {{"Retry-After", "1"}}}));
    return;
  }
  const auto registration = std::make_shared<Registration>(context, std::move(call));
  registration->enter();
  context.workers([registration] { registration->run(); });
}

std::string salt_of(const Call& call) {
  const auto salt = call.query.find("cache_salt");
  return tenant_salt(call.tenant, salt == call.query.end() ? "" : salt->second);
}

template <typename Work>
void answer_without_body(ServingContext& context, Call call, Work work) {
  if (!call.http.body.empty()) {
    call.sink->reply(error_reply({400, "this request takes no body; parameters go into the URL"}));
    return;
  }
  reply_from_worker(context, std::move(call), std::move(work));
}

using Change = Status (Engine::*)(const std::string&, const std::string&);

std::function<void(Call)> changing(ServingContext& context, Change change, json result) {
  return [&context, change, result = std::move(result)](Call call) {
    answer_without_body(context, std::move(call), [&context, change, result](const Call& of) {
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
  router.add({"POST", "/v1/documents", false, {}, [&context](Call call) {
                register_documents(context, std::move(call));
              }});
  router.add({"GET", "/v1/documents", false, salt, [&context](Call call) {
                answer_without_body(context, std::move(call), [&context](const Call& of) {
                  json list = json::array();
                  for (const auto& document : context.engine.documents(salt_of(of))) {
                    list.push_back(document_json(document));
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
