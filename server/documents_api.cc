#include "documents_api.h"

#include <atomic>
#include <exception>
#include <functional>
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

/// Registers the documents of one request and answers when the last one is ready, or the first one
/// has failed. They are with the engine a few at a time, in their order, so that requests that come
/// later wait for few of them only. Ends when the client leaves.
class Registration : public std::enable_shared_from_this<Registration> {
 public:
  Registration(ServingContext& context, Call call) : context_(context), call_(std::move(call)) {}

  /// I/O thread.
  void start() {
    const std::weak_ptr<Registration> weak = weak_from_this();
    active_id_ = context_.active.enter([weak] {
      if (const auto self = weak.lock()) {
        self->finish(error_reply({503, "the server is shutting down", "", "shutting_down"}));
      }
    });
    call_.sink->on_gone([weak] {
      if (const auto self = weak.lock()) self->leave();
    });
    context_.workers([self = shared_from_this()] {
      if (self->ended_) return;
      const auto parsed = std::make_shared<ApiExpected<std::vector<Segment>>>(self->parse());
      self->context_.io([self, parsed] { self->begin(std::move(*parsed)); });
    });
  }

 private:
  static constexpr size_t kAtOnce = 8;  // documents with the engine

  // Worker.
  ApiExpected<std::vector<Segment>> parse() try {
    const auto body = parse_body(call_.http.body, context_.limits.max_json_depth);
    if (!body) return body.error();
    RequestFields fields(*body, "");
    if (fields.find("model") != nullptr) check_model(fields, context_.rules.model);
    fields.require("documents");
    const auto documents = read_documents(fields, "documents", context_.rules.max_documents);
    options_.method = read_method(fields);
    options_.tenant = call_.tenant;
    options_.cache_salt = tenant_salt(call_.tenant, fields.string("cache_salt").value_or(""));
    if (auto error = fields.finish()) return *std::move(error);
    auto segments = document_segments(context_.engine, documents);
    if (!segments.ok()) return error_of(segments.status());
    return *std::move(segments);
  } catch (const std::exception& error) {
    return failure_of(error);
  }

  void begin(ApiExpected<std::vector<Segment>> segments) {
    call_.http.body = {};
    if (ended_) return;
    if (!segments) return finish(error_reply(segments.error()));
    segments_ = *std::move(segments);
    documents_.resize(segments_.size());
    give_up_.resize(segments_.size());
    go_on();
  }

  void go_on() {
    if (num_ended_ == segments_.size()) {
      return finish(json_reply({{"object", "list"}, {"data", documents_}}));
    }
    if (handing_in_ || num_given_ == segments_.size() || num_given_ - num_ended_ >= kAtOnce) return;
    handing_in_ = true;
    context_.workers([self = shared_from_this(), index = num_given_++] { self->hand_in(index); });
  }

  // Worker: the call tokenizes.
  void hand_in(size_t index) {
    if (ended_) return;
    std::function<void()> give_up = [] {};
    const auto done = [self = shared_from_this(), index, io = context_.io](auto document) {
      io([self, index, document = std::move(document)] { self->add(index, document); });
    };
    try {
      give_up = context_.engine.register_document(segments_[index], options_, done);
    } catch (const std::exception& error) {
      context_.io([self = shared_from_this(), index, failure = failure_of(error)] {
        self->fail(index, failure);
      });
    }
    context_.io([self = shared_from_this(), index, give_up = std::move(give_up)] {
      self->keep(index, give_up);
    });
  }

  void keep(size_t index, std::function<void()> give_up) {
    if (ended_) return give_up();
    give_up_[index] = std::move(give_up);
    handing_in_ = false;
    go_on();
  }

  void add(size_t index, const Expected<CachedDocument>& document) {
    if (ended_) return;
    if (!document.ok()) return fail(index, error_of(document.status()));
    documents_[index] = document_json(*document);
    ++num_ended_;
    go_on();
  }

  void fail(size_t index, ApiError error) {
    const std::string name = "documents[" + std::to_string(index) + "]";
    if (error.param != name) error.message = name + ": " + error.message;
    error.param = name;
    finish(error_reply(error));
  }

  void finish(HttpReply reply) {
    if (ended_) return;
    const auto sink = call_.sink;
    leave();
    sink->reply(std::move(reply));
  }

  void leave() {
    if (ended_.exchange(true)) return;
    const auto self = shared_from_this();
    context_.active.leave(active_id_);
    for (const auto& give_up : give_up_) {
      if (give_up) give_up();
    }
    call_.sink->on_gone({});
    call_.sink.reset();
  }

  ServingContext& context_;  // perhaps gone once this has ended
  Call call_;
  uint64_t active_id_ = 0;
  std::atomic<bool> ended_{false};  // written on the I/O thread; so are those that follow options_
  DocumentOptions options_;
  std::vector<Segment> segments_;
  std::vector<json> documents_;
  std::vector<std::function<void()>> give_up_;
  size_t num_given_ = 0;  // to the engine
  size_t num_ended_ = 0;
  bool handing_in_ = false;
};

void register_documents(ServingContext& context, Call call) {
  if (context.active.full()) {
    call.sink->reply(error_reply(queue_full(context.active.limit())));
    return;
  }
  std::make_shared<Registration>(context, std::move(call))->start();
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
