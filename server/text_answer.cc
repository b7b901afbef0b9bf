#include "text_answer.h"

#include <variant>

#include "json_body.h"
#include "usage_json.h"

namespace anyslot::server {

using nlohmann::json;

size_t TextAnswer::whole_bytes(const Usage& usage) const {
  return text_.size() + usage_bytes(usage);
}

void TextAnswer::add(const Event& event) {
  text_ += event.text;
  if (event.finish_reason) end_ = end_of(event);
}

std::string TextAnswer::whole(const Usage& usage) const {
  return to_text(whole_json(text_, end_, usage));
}

TextAnswer::End TextAnswer::end_of(const Event& event) {
  End end{event.finish_reason.value_or(FinishReason::kStop), std::nullopt};
  if (!event.stop_reason) return end;
  if (const auto* stop = std::get_if<std::string>(&*event.stop_reason)) end.stop = *stop;
  return end;
}

void send_typed(ResponseSink& sink, const json& data) {
  sink.send_event(data.at("type").get_ref<const std::string&>(), to_text(data));
}

}  // namespace anyslot::server
