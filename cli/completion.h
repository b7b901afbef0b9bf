#pragma once

#include <functional>
#include <string>
#include <vector>

#include "anyslot/engine.h"

namespace anyslot::cli {

/// All events of one request, put together.
struct Completion {
  std::string text;
  std::vector<int32_t> token_ids;
  std::vector<double> token_ms;      // when each came, since submission
  std::vector<float> prompt_logits;  // [num_text_tokens, vocab], when asked for
  FinishReason finish_reason = FinishReason::kStop;
  Usage usage;
};

/// Waits for the end of a request; `on_text` sees the pieces of the answer as they come, and its
/// failure cancels the request. Fails with the engine's reason when the request ends in an error.
Expected<Completion> collect(Stream stream,
                             const std::function<Status(std::string_view)>& on_text = {});

/// Submits a request and collects its events. Fails also when it is refused.
Expected<Completion> complete(Engine& engine, const Request& request,
                              const std::function<Status(std::string_view)>& on_text = {});

}  // namespace anyslot::cli
