#include "registration.h"

#include <exception>
#include <string>
#include <utility>

#include "answer_request.h"
#include "api_keys.h"
#include "document_fields.h"
#include "engine_request.h"
#include "json_body.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr size_t kAtOnce = 8;  // documents with the engine

}  // namespace

json cached_document_json(const CachedDocument& document) {
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

void Registration::start(ServingContext& context, Call call) {
  std::make_shared<Registration>(context, std::move(call))->enter();
}

Registration::Registration(ServingContext& context, Call call)
    : context_(context), call_(std::move(call)) {}

void Registration::enter() {
  const std::weak_ptr<Registration> weak = weak_from_this();
  call_.http.place->on_cancel([weak] {
    if (const auto self = weak.lock()) self->finish(error_reply(shutting_down()));
  });
  call_.sink->on_gone([weak] {
    if (const auto self = weak.lock()) self->leave();
  });
  context_.aside([self = shared_from_this()] {
    if (self->ended_) return;
    self->parsed_ = self->parse();
    self->call_.http.body.clear();
    self->context_.io([self] { self->guard([&] { self->begin(); }); });
  });
}

template <typename Work>
void Registration::guard(Work work) {
  try {
    work();
  } catch (const std::exception& error) {
    if (ended_) return;
    try {
      finish(error_reply(failure_of(error)));
    } catch (const std::exception&) {  // not even memory for the error: the sink answers
      leave();
    }
  }
}

// Worker.
ApiExpected<std::vector<Segment>> Registration::parse() try {
  const auto body = parse_body(call_.http.body.text, context_.limits.max_json_depth);
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

void Registration::begin() {
  if (ended_) return;
  if (!*parsed_) return finish(error_reply(parsed_->error()));
  segments_ = **std::move(parsed_);
  parsed_.reset();
  documents_.resize(segments_.size());
  give_up_.resize(segments_.size());
  go_on();
}

void Registration::go_on() {
  if (num_ended_ == segments_.size()) {
    return finish(json_reply({{"object", "list"}, {"data", documents_}}));
  }
  if (handing_in_ || num_given_ == segments_.size() || num_given_ - num_ended_ >= kAtOnce) return;
  handing_in_ = true;
  context_.aside([self = shared_from_this(), index = num_given_++] { self->hand_in(index); });
}

// Worker: the call tokenizes.
void Registration::hand_in(size_t index) {
  if (ended_) return;
  std::function<void()> give_up = [] {};
  const auto done = [self = shared_from_this(), index, io = context_.io](auto document) {
    io([self, index, document = std::move(document)] {
      self->guard([&] { self->add(index, document); });
    });
  };
  try {
    give_up = context_.engine.register_document(segments_[index], options_, done);
  } catch (const std::exception& error) {
    context_.io([self = shared_from_this(), index, failure = failure_of(error)] {
      self->fail(index, failure);
    });
  }
  context_.io([self = shared_from_this(), index, give_up = std::move(give_up)] {
    self->guard([&] { self->keep(index, give_up); });
  });
}

void Registration::keep(size_t index, std::function<void()> give_up) {
  if (ended_) return give_up();
  give_up_[index] = std::move(give_up);
  handing_in_ = false;
  go_on();
}

void Registration::add(size_t index, const Expected<CachedDocument>& document) {
  if (ended_) return;
  if (!document.ok()) return fail(index, error_of(document.status()));
  documents_[index] = cached_document_json(*document);
  give_up_[index] = {};
  ++num_ended_;
  go_on();
}

void Registration::fail(size_t index, ApiError error) {
  const std::string name = "documents[" + std::to_string(index) + "]";
  if (error.param != name) error.message = name + ": " + error.message;
  error.param = name;
  finish(error_reply(error));
}

void Registration::finish(HttpReply reply) {
  if (ended_) return;
  const auto sink = call_.sink;
  call_.http.place.reset();  // the connection holds it until all is written
  leave();
  sink->reply(std::move(reply));
}

void Registration::leave() {
  if (ended_.exchange(true)) return;
  const auto self = shared_from_this();
  for (const auto& give_up : give_up_) {
    if (give_up) give_up();
  }
  call_.sink->on_gone({});
  call_.sink.reset();
}

}  // namespace anyslot::server
