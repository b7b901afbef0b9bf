#include "completion.h"

#include <utility>

namespace anyslot::cli {

Expected<Completion> collect(Stream stream,
                             const std::function<Status(std::string_view)>& on_text) {
  Completion completion;
  while (true) {
    Event event = stream.next();
    if (on_text && !event.text.empty()) {
      Status status = on_text(event.text);
      if (!status.ok()) return status;
    }
    completion.text += event.text;
    completion.token_ids.insert(completion.token_ids.end(), event.token_ids.begin(),
                                event.token_ids.end());
    completion.token_ms.resize(completion.token_ids.size(), event.at_ms);
    if (!event.prompt_logits.empty()) completion.prompt_logits = std::move(event.prompt_logits);
    if (!event.finish_reason) continue;
    if (*event.finish_reason == FinishReason::kError) return internal_error(event.error);
    if (*event.finish_reason == FinishReason::kCancelled) {
      return Status(StatusCode::kCancelled, "the request was cancelled");
    }
    completion.finish_reason = *event.finish_reason;
    completion.usage = std::move(event.usage);
    return completion;
  }
}

Expected<Completion> complete(Engine& engine, const Request& request,
                              const std::function<Status(std::string_view)>& on_text) {
  Expected<Stream> stream = engine.submit(request);
  if (!stream) return stream.status();
  return collect(*std::move(stream), on_text);
}

}  // namespace anyslot::cli
