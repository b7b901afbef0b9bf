#include "answer_format.h"

#include <atomic>
#include <random>
#include <variant>

#include "json_body.h"

namespace anyslot::server {

using nlohmann::json;

std::string new_answer_id(std::string_view prefix) {
  static const uint64_t kProcess =
      (uint64_t{std::random_device()()} << 32) | std::random_device()();
  static std::atomic<uint64_t> next{0};
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string id(prefix);
  for (const uint64_t number : {kProcess, next.fetch_add(1)}) {
    for (int shift = 60; shift >= 0; shift -= 4) id += kDigits[(number >> shift) & 15U];
  }
  return id;
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
