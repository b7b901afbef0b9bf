#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "answer_request.h"
#include "anyslot/result.h"
#include "errors.h"
#include "http_exchange.h"

namespace anyslot::server {

/// The bytes that a token stands for.
using TokenBytes = std::function<std::string(int32_t)>;

/// What an API needs to write one answer.
struct AnswerSetup {
  std::string model;
  int64_t created = 0;  // seconds since 1970
  TokenBytes token_bytes;
  int num_choices = 1;
  bool include_usage = false;  // of a stream, in a message of its own
};

/// Writes one answer in the words of an API: as a stream, or put together and whole. Called by one
/// thread at a time.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  /// What a stream begins with, before there is anything to tell.
  virtual void begin(ResponseSink& sink) = 0;
  /// What an event of the engine brings to a stream, and with the last one its end.
  virtual void send(const Event& event, ResponseSink& sink) = 0;
  /// Ends a stream with an error.
  virtual void send_error(const ApiError& error, ResponseSink& sink) = 0;

  /// Keeps what an event brought, for a whole answer; not to be mixed with send().
  virtual void add(const Event& event) = 0;
  /// Bytes of whole(), roughly.
  virtual size_t whole_bytes(const Usage& usage) const = 0;
  virtual std::string whole(const Usage& usage) const = 0;
};

/// How an API asks for answers and tells them.
struct AnswerFormat {
  ApiExpected<AnswerRequest> (*parse)(const nlohmann::json& body, const RequestRules& rules);
  std::unique_ptr<AnswerWriter> (*open)(const AnswerSetup& setup);
  ErrorFormat error_body;
};

/// An id of its own for each answer, behind the prefix of its API.
std::string new_answer_id(std::string_view prefix);

}  // namespace anyslot::server
