#include "blocks_answer.h"

#include <memory>
#include <string>

#include "blocks_request.h"
#include "json_body.h"
#include "text_answer.h"
#include "usage_json.h"

namespace anyslot::server {

using nlohmann::json;

namespace {

constexpr int kFailed = 1;  // of "ret"; 0: it went well

std::string blocks_error_body(const ApiError& error) {
  return to_text({{"ret", kFailed}, {"generated", ""}, {"message", error_message(error)}});
}

class BlocksAnswer : public TextAnswer {
 public:
  void begin(ResponseSink& /*sink*/) override {}
  void send(const Event& event, ResponseSink& sink) override {
    if (event.text.empty() && !event.last) return;
    json data = {{"ret", 0}, {"generated", event.text}, {"message", ""}};
    if (event.last) {
      data["finish_reason"] = finish_reason_name(end_of(event).reason);
      data["usage"] = usage_json(event.usage);
    }
    sink.send_event("", to_text(data));
  }
  void send_error(const ApiError& error, ResponseSink& sink) override {
    sink.send_event("", blocks_error_body(error));
  }

 protected:
  json whole_json(const std::string& text, const End& end, const Usage& usage) const override {
    return {{"ret", 0},
            {"generated", text},
            {"message", ""},
            {"finish_reason", finish_reason_name(end.reason)},
            {"usage", usage_json(usage)}};
  }
};

}  // namespace

AnswerFormat blocks_format() {
  return {parse_blocks_request,
          [](const AnswerSetup& /*setup*/) -> std::unique_ptr<AnswerWriter> {
            return std::make_unique<BlocksAnswer>();
          },
          blocks_error_body};
}

}  // namespace anyslot::server
