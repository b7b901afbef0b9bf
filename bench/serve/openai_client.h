#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "target.h"

namespace anyslot::bench {

/// The body of a streamed request in OpenAI's form.
std::string request_body(const HttpTargetOptions& options, const WorkloadRequest& request);

/// Cuts server-sent events out of a stream.
class EventParser {
 public:
  /// The data of the events that `bytes` completes.
  std::vector<std::string> feed(std::string_view bytes);

 private:
  std::string unread_;
  std::string data_;  // of the event that has begun
};

/// What one event of an answer says.
struct AnswerChunk {
  bool is_output = false;  // the answer went on, perhaps without visible text
  std::string text;
  bool finished = false;  // a finish_reason came
  std::string error;      // not empty: the server gave up, or this is no chunk
  std::optional<int64_t> prompt_tokens;
  std::optional<int64_t> cached_tokens;
  std::optional<int64_t> output_tokens;
  std::vector<DocumentUsage> documents;  // our server tells of each
};

/// `data`: of an event that is not "[DONE]".
AnswerChunk parse_chunk(const std::string& data);

/// The message of an error in OpenAI's form, or the body's begin.
std::string error_message(const std::string& body);

/// The sum over the lines of a metric in Prometheus's text form whose labels hold `label`; none
/// when there are none.
std::optional<int64_t> metric_sum(std::string_view text, std::string_view name,
                                  std::string_view label);

}  // namespace anyslot::bench
